//! Starting the binary, and waiting for conditions.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use sexton_control::client::Endpoint;
use sexton_control::prover::client::ProverClient;
use sexton_control::prover::{EngineState, JobState, ProofAnswer, ProofFormat, ProofRequest};
use tempfile::TempDir;

/// How long anything may take before the test fails.
pub(crate) const DEADLINE: Duration = Duration::from_secs(50);

/// A folder of its own, and the binary run in it.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The binary with no more of our environment than it needs.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_prover"));
        command.current_dir(self.folder.path()).env_clear().env("SEXTON_KEYS", self.path("keys"));
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    /// Runs a command line without quoting, such as `verify a --vk b`.
    pub(crate) fn line(&self, line: &str) -> Output {
        self.run(line.split(' '))
    }

    /// Proves mimc-2^8 into `proof.json`, `vk.json` and `public.json`.
    pub(crate) fn prove(&self, more: &str) {
        let line = "prove mimc --size 2^8 --proof proof.json --vk vk.json --public public.json";
        let output = self.line(&format!("{line}{more}"));
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    pub(crate) fn serve(&self, arguments: &[&str]) -> Server {
        Server::start(self, arguments, &[])
    }
}

/// A `prover serve` that is ready. It is killed and reaped when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) client: ProverClient,
    pub(crate) log: PathBuf,
}

impl Server {
    pub(crate) fn start(place: &Place, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let (socket, log) = (place.path("prover.sock"), place.path("serve.log"));
        let mut command = place.command();
        command.arg("serve").arg("--socket").arg(&socket).args(arguments).envs(environment.iter().copied());
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap()).process_group(0);
        let child = command.spawn().unwrap();
        let client = ProverClient::new(Endpoint::Unix(socket), DEADLINE);
        let mut server = Self { child, client, log };
        until("ready", || {
            if let Some(status) = server.child.try_wait().unwrap() {
                panic!("serve ended with {status}: {}", server.log());
            }
            block(server.client.ready()).is_ok_and(|admission| admission.state == EngineState::Ready)
        });
        server
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    /// Waits for the end of the process.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the end of serve", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    pub(crate) fn submit(&self, request: &ProofRequest) -> String {
        block(self.client.submit(request)).unwrap().id
    }

    pub(crate) fn state(&self, id: &str) -> JobState {
        block(self.client.proof(id, ProofFormat::Native)).unwrap().state
    }

    /// The answer of a job when it has ended.
    pub(crate) fn answer(&self, id: &str) -> ProofAnswer {
        let answer = block(self.client.wait(id, ProofFormat::Native, DEADLINE)).unwrap();
        assert!(answer.state.is_ended(), "{answer:?}");
        answer
    }

    /// Submits a proof that takes about a second and waits until a worker has it.
    pub(crate) fn submit_and_begin(&self, id: &str) {
        self.submit(&mimc(id, 13));
        until("the job to run", || self.state(id) != JobState::Queued);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn mimc(id: &str, log2_size: u32) -> ProofRequest {
    request(Some(id), "mimc", json!({"size": format!("2^{log2_size}")}))
}

pub(crate) fn request(id: Option<&str>, circuit: &str, inputs: Value) -> ProofRequest {
    ProofRequest {
        id: id.map(str::to_owned),
        circuit: circuit.to_owned(),
        inputs,
        priority: Default::default(),
        deadline_seconds: None,
    }
}

/// Looks until the condition holds.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "waited {DEADLINE:?} for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs one asynchronous call.
pub(crate) fn block<T>(call: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(call)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Exit code, stdout, stderr.
pub(crate) fn seen(output: &Output) -> (Option<i32>, String, String) {
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
