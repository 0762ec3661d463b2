//! `prover serve`: proofs over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use sexton_groth16::Shape;
use sexton_model::units::parse_duration;

use super::KeyFolder;
use crate::engine::Settings;
use crate::engine::ledger::Limits;
use crate::exit::{self, Failure};
use crate::memory::parse_budget;
use crate::server::{Options, serve};

/// Serve proofs over HTTP on a Unix socket
///
/// SIGTERM, SIGINT or `POST /drain` end it: waiting jobs are handed back, running ones are finished, exit code 0. A
/// second signal hands back the running ones too. Events are written to stderr, one line each.
#[derive(Debug, Args)]
#[command(after_help = "\
Routes:
  POST /v1/proofs                      submit {circuit, inputs, id, priority, deadline_seconds}
  GET /v1/proofs/ID?wait=30s           state, and the proof when it is done; format=snarkjs
  DELETE /v1/proofs/ID                 cancel
  GET /v1/circuits/CIRCUIT/vk          verifying key, of mimc-2^12 for example; format=snarkjs
  GET /v1/keys, /status, /metrics, /healthz, /readyz
  POST, DELETE /quiesce                stop admission, and take that back
  POST /drain                          quiesce, answer or hand back every job, exit

Environment:
  SEXTON_MEMORY_BUDGET_BYTES           memory budget in bytes, shown in /status
  SEXTON_RUN_ID                        shown in /status
  NOTIFY_SOCKET                        told READY=1 and STOPPING=1 (sd_notify)

Inputs:
  mimc                                 size, such as \"2^12\"; seed
  sha256                               preimage, or preimage_hex
  merkle                               file (absolute path), block; block_size, such as \"64KiB\"

Example:
  curl --unix-socket SOCKET -d '{\"circuit\":\"mimc\",\"inputs\":{\"size\":\"2^12\"}}' http://prover/v1/proofs")]
pub(super) struct Arguments {
    /// Unix socket to listen on, made with mode 0600 [default: /run/sexton/prover/prover.sock for root, else
    /// $XDG_RUNTIME_DIR/sexton/prover/prover.sock]
    #[arg(long, value_name = "PATH", env = "SEXTON_PROVER_SOCKET", hide_env_values = true)]
    socket: Option<PathBuf>,
    /// Also listen on this loopback address; every user of this host can connect to it
    #[arg(long, value_name = "127.0.0.1:PORT")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    keys: KeyFolder,
    /// Have the key of this circuit in memory before being ready (repeatable)
    #[arg(long, value_name = "CIRCUIT", value_parser = |text: &str| text.parse::<Shape>())]
    preload: Vec<Shape>,
    /// Jobs proved at once; each of them uses all cores already
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
    /// Jobs that may wait; one more is refused with 503
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    queue: u32,
    /// Answers kept for clients; the oldest is dropped for a new one
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    answers: u32,
    /// While draining, keep an answer that nobody has fetched for this long after its job's end
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    linger: Duration,
}

pub(super) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    if json {
        return Err(Failure::new(
            exit::USAGE,
            "serve prints no document, so --json has no meaning: ask GET /status",
        ));
    }
    let text = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    let budget_bytes = match std::env::var_os("SEXTON_MEMORY_BUDGET_BYTES") {
        Some(value) => {
            let budget = parse_budget(&value.to_string_lossy());
            Some(budget.map_err(|error| Failure::new(exit::CONFIG, error))?)
        }
        None => None,
    };
    serve(Options {
        socket: arguments.socket_path()?,
        listen: arguments.listen,
        keys: arguments.keys.path()?,
        preload: arguments.preload.clone(),
        linger: arguments.linger,
        engine: Settings {
            workers: arguments.workers.into(),
            limits: Limits { queue_jobs: arguments.queue as usize, answers: arguments.answers as usize },
            budget_bytes,
            run_id: text("SEXTON_RUN_ID"),
        },
    })
}

impl Arguments {
    fn socket_path(&self) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.socket {
            return Ok(path.clone());
        }
        if nix::unistd::geteuid().is_root() {
            return Ok(PathBuf::from("/run/sexton/prover/prover.sock"));
        }
        let runtime =
            std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
        runtime.map(|runtime| runtime.join("sexton/prover/prover.sock")).ok_or_else(|| {
            Failure::new(exit::CONFIG, "no folder for the socket: set XDG_RUNTIME_DIR, or give --socket PATH")
        })
    }
}
