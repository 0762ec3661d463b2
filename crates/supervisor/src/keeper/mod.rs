//! The keeper: the prover's parent.
//!
//! The same binary as the supervisor, under the name `sexton-keeper`, one for each supervised prover. It forks, waits,
//! keeps; it decides nothing. A supervisor may die, be killed or be replaced by a new version: the keeper goes on
//! copying output and will have the true wait status, since it is the parent. Connections to it come and go on
//! `keeper.sock`.
//!
//! ```text
//! supervisor ── frames (wire) ──► keeper ── fork, held until run.json is durable ──► prover
//!                                   ▲ │                                                │ stdout, stderr
//!                                   │ └─ wait.json, then the reap                      ▼
//!                                   └──────────── splice ── output.fifo ◄──────────────┘
//! ```
//!
//! The order at a death: peek (`WNOWAIT`), record the evidence, drain the FIFO, write `wait.json` durably, reap, tell the supervisor. A
//! keeper that is killed anywhere in between leaves either the file or a zombie, and the zombie falls to the
//! supervisor, which does the same.
//!
//! Between a death and its durable record nothing is allocated, so that a machine without memory cannot lose a status.
//! The keeper leaves by itself when there is neither a run nor a supervisor.

pub mod evidence;
pub mod log;
pub mod output;
pub mod wait_file;
pub mod wire;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use sexton_process::ready::{self, Slot};
use sexton_process::splice::Moved;
use sexton_process::{Held, Pidfd, Spawn, SpawnError, fifo};

use crate::runs::RunDir;
use evidence::Evidence;
use output::Output;
use wait_file::{RECORD_BYTES, StartError, WaitFile, WaitRecord};
use wire::{FromKeeper, PROTOCOL, Phase, SpawnRequest, ToKeeper};

/// `argv[0]` of a keeper: what `ps` shows, and how the binary knows.
pub const ARGV0: &str = "sexton-keeper";
/// Descriptor of the listening socket.
pub const LISTENER_FD: i32 = 3;
/// Descriptor of the first connection.
pub const CONNECTION_FD: i32 = 4;

/// How often a dead process that somebody traces is tried again: its pidfd stays readable all the while.
const HELD_INTERVAL: Duration = Duration::from_millis(200);

/// Outputs that are read at once: the living run's, and those of earlier runs whose grandchildren still write.
const OUTPUTS_MAX: usize = ready::MOST - 4;

/// The keeper's `main`.
pub fn main() -> ExitCode {
    // It was executed as /proc/self/exe: `ps` would show "exe".
    let _ = sexton_process::set_name(c"sexton-keeper");
    match Keeper::new().and_then(|mut keeper| keeper.serve()) {
        Ok(()) => ExitCode::SUCCESS,
        // Standard error is /dev/null here; a keeper that cannot start is seen by its supervisor as a closed
        // connection.
        Err(_) => ExitCode::FAILURE,
    }
}

/// A child and what there is to do at its death.
#[derive(Debug)]
struct Run {
    run_id: String,
    pid: i32,
    pidfd: Pidfd,
    /// Present until the program may run.
    held: Option<Held>,
    /// So that a prover that closes its output does not end the FIFO: see [`fifo::hold`].
    _fifo: File,
    wait_file: WaitFile,
    evidence: Evidence,
    start_error: Option<StartError>,
    /// All its threads are dead and it cannot be waited for: somebody traces it (`HELD_INTERVAL`).
    held_by_tracer: bool,
}

#[derive(Debug)]
struct Keeper {
    listener: UnixListener,
    connection: Option<Connection>,
    /// Readable when a child has ended.
    child_ended: UnixStream,
    run: Option<Run>,
    /// The last one is the living run's.
    outputs: Vec<Output>,
    quitting: bool,
}

#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    received: Vec<u8>,
}

impl Connection {
    fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, received: Vec::with_capacity(4096) })
    }
}

impl Keeper {
    fn new() -> io::Result<Self> {
        sexton_process::become_subreaper()?;
        // Only its supervisor's word or the end of all work ends a keeper: not the terminal, not a service manager that
        // signals every process of the group.
        for signal in [
            signal_hook::consts::SIGHUP,
            signal_hook::consts::SIGINT,
            signal_hook::consts::SIGQUIT,
            signal_hook::consts::SIGTERM,
        ] {
            signal_hook::flag::register(signal, std::sync::Arc::default())?;
        }
        let (child_ended, wake) = UnixStream::pair()?;
        child_ended.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, wake)?;
        let listener = UnixListener::from(sexton_process::inherited(LISTENER_FD)?);
        listener.set_nonblocking(true)?;
        let first = UnixStream::from(sexton_process::inherited(CONNECTION_FD)?);
        let mut keeper = Self {
            listener,
            connection: None,
            child_ended,
            run: None,
            outputs: Vec::with_capacity(OUTPUTS_MAX),
            quitting: false,
        };
        keeper.connect(first);
        Ok(keeper)
    }

    /// The loop. Ends when there is nothing left to keep.
    fn serve(&mut self) -> io::Result<()> {
        loop {
            let mut slots = [Slot::new(None); ready::MOST];
            slots[0] = Slot::new(Some(self.child_ended.as_fd()));
            slots[1] = Slot::new(Some(self.listener.as_fd()));
            slots[2] = Slot::new(self.connection.as_ref().map(|connection| connection.stream.as_fd()));
            let held_by_tracer = self.run.as_ref().is_some_and(|run| run.held_by_tracer);
            let run = self.run.as_ref().filter(|run| !run.held_by_tracer);
            slots[3] = Slot::new(run.map(|run| run.pidfd.as_fd()));
            for (slot, output) in slots[4..].iter_mut().zip(&self.outputs) {
                *slot = Slot::new(Some(output.as_fd()));
            }
            ready::wait(&mut slots, held_by_tracer.then_some(HELD_INTERVAL))?;
            let ready = slots.map(|slot| slot.readable || slot.hung_up);

            // Output first: what a prover wrote before its death is in the log before its ending is told.
            self.copy_outputs(&ready[4..]);
            if ready[3] || held_by_tracer {
                self.end_run();
            }
            if ready[0] {
                self.reap_orphans()?;
            }
            if ready[2] {
                self.receive();
            }
            if ready[1]
                && let Ok((stream, _)) = self.listener.accept()
            {
                self.connect(stream);
            }
            let idle = self.run.is_none() && self.outputs.is_empty();
            if idle && (self.quitting || self.connection.is_none()) {
                return Ok(());
            }
        }
    }

    /// A supervisor has come: it replaces the one before, and that one's wish to be left alone.
    fn connect(&mut self, stream: UnixStream) {
        self.disconnect();
        self.quitting = false;
        self.connection = Connection::new(stream).ok();
        let (phase, pid, run_id) = match &self.run {
            None => (Phase::Idle, 0, String::new()),
            // Its program does not run, and never will.
            Some(run) if run.held.is_some() || run.start_error.is_some() => {
                (Phase::Held, run.pid, run.run_id.clone())
            }
            Some(run) => (Phase::Running, run.pid, run.run_id.clone()),
        };
        let keeper_pid = std::process::id() as i32;
        self.send(&FromKeeper::State { protocol: PROTOCOL, keeper_pid, phase, pid, run_id }.encode());
    }

    fn disconnect(&mut self) {
        self.connection = None;
        // The supervisor died between the fork and the record: the program must not run.
        self.abandon();
    }

    fn abandon(&mut self) {
        if let Some(run) = &mut self.run
            && run.held.take().is_some()
        {
            run.start_error = Some(StartError { stage: 0, errno: sexton_process::ECANCELED });
        }
    }

    /// A supervisor that does not read is as good as gone: it learns the state when it connects again.
    fn send(&mut self, frame: &[u8]) {
        let Some(connection) = &mut self.connection else { return };
        if connection.stream.write_all(frame).is_err() {
            self.disconnect();
        }
    }

    fn receive(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        let mut piece = [0; 4096];
        let alive = loop {
            match connection.stream.read(&mut piece) {
                Ok(0) => break false,
                Ok(length) => connection.received.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break false,
            }
        };
        while let Some(connection) = &mut self.connection {
            let message = match wire::split(&connection.received) {
                Ok(None) => break,
                Ok(Some((body, length))) => {
                    let message = ToKeeper::decode(body);
                    connection.received.drain(..length);
                    message
                }
                Err(malformed) => Err(malformed),
            };
            match message {
                Ok(message) => self.obey(message),
                Err(_) => return self.disconnect(),
            }
        }
        if !alive {
            self.disconnect();
        }
    }

    fn obey(&mut self, message: ToKeeper) {
        match message {
            ToKeeper::Spawn(request) if self.run.is_none() => {
                let reply = match self.spawn(*request) {
                    Ok(pid) => FromKeeper::Prepared { pid },
                    Err((stage, errno)) => FromKeeper::SpawnFailed { stage, errno },
                };
                self.send(&reply.encode());
            }
            // One prover at a time.
            ToKeeper::Spawn(_) => {
                self.send(&FromKeeper::SpawnFailed { stage: 0, errno: sexton_process::EBUSY }.encode());
            }
            ToKeeper::Go => {
                let Some(run) = &mut self.run else { return };
                let Some(held) = run.held.take() else { return };
                let reply = match held.release().1 {
                    Ok(()) => FromKeeper::Started,
                    Err(error) => {
                        let (stage, errno) = number(&error);
                        run.start_error = Some(StartError { stage, errno });
                        FromKeeper::ExecFailed { stage, errno }
                    }
                };
                self.send(&reply.encode());
            }
            ToKeeper::Abandon => self.abandon(),
            ToKeeper::Watch(paths) => {
                if let Some(run) = &mut self.run {
                    run.evidence.watch(paths.into_iter().map(PathBuf::from).collect());
                }
            }
            ToKeeper::Rotate(rotation) => {
                self.outputs.iter_mut().for_each(|output| output.set_rotation(rotation));
            }
            ToKeeper::Quit => self.quitting = true,
        }
    }

    /// Makes the held child. The errors are a [`sexton_process::Stage`] (0: not one) and an errno.
    fn spawn(&mut self, request: SpawnRequest) -> Result<i32, (u8, i32)> {
        let plain = |error: io::Error| (0, error.raw_os_error().unwrap_or(sexton_process::EIO));
        let dir = RunDir::from_path(&PathBuf::from(&request.run_dir));
        let wait_file = WaitFile::prepare(dir.path()).map_err(plain)?;
        let evidence = Evidence::prepare(dir.path()).map_err(plain)?;
        if self.outputs.len() == OUTPUTS_MAX {
            // The oldest generation's output is given up: its writers block once their FIFO is full.
            self.outputs.remove(0);
        }
        let output = Output::open(dir.path(), request.rotation).map_err(plain)?;
        let writer = fifo::open_for_prover(&dir.fifo()).map_err(plain)?;
        let fifo = fifo::hold(&dir.fifo()).map_err(plain)?;
        let spawn = prepare(request.clone(), writer).map_err(plain)?;
        let held = spawn.start().map_err(|error| number(&error))?;
        let pid = held.pid();
        let pidfd = Pidfd::open(pid).map_err(plain)?;
        self.outputs.push(output);
        self.run = Some(Run {
            run_id: request.run_id,
            pid,
            pidfd,
            held: Some(held),
            _fifo: fifo,
            wait_file,
            evidence,
            start_error: None,
            held_by_tracer: false,
        });
        Ok(pid)
    }

    fn copy_outputs(&mut self, ready: &[bool]) {
        let mut ready = ready.iter();
        self.outputs.retain_mut(|output| {
            let is_ready = ready.next().copied().unwrap_or(false);
            !is_ready || output.copy() != Moved::NoWriter
        });
    }

    /// The run has ended: keep everything that can be known, then reap.
    fn end_run(&mut self) {
        let Some(run) = &mut self.run else { return };
        // A dead process that a debugger holds: its pidfd is readable, and its parent is told nothing until that lets go.
        let Ok(Some(ended)) = run.pidfd.peek() else {
            run.held_by_tracer = true;
            return;
        };
        // First: a cgroup may be removed by whoever made it, and its neighbours go on counting.
        run.evidence.record();
        let mut record = WaitRecord::new(&run.run_id, run.pid, Some(ended));
        record.start_error = run.start_error;
        let mut buffer = [0; RECORD_BYTES];
        let bytes = keep(&mut record, self.outputs.last_mut(), &run.wait_file, &mut buffer);
        // Reaped whatever the disk said: the supervisor gets the status by the frame below too.
        let _ = run.pidfd.reap();
        let frame = FromKeeper::Ended(bytes.to_vec()).encode();
        self.run = None;
        self.send(&frame);
    }

    fn reap_orphans(&mut self) -> io::Result<()> {
        let mut sink = [0; 64];
        while matches!(self.child_ended.read(&mut sink), Ok(length) if length > 0) {}
        let main = self.run.as_ref().map(|run| run.pid);
        sexton_process::reap_orphans(main.as_slice())?;
        Ok(())
    }
}

/// What is done between the end of a run and its reaping, by whoever is its parent: the rest of its output goes into
/// the log, its record onto the disk. Returns the record's bytes, also where the disk would not take them.
pub fn keep<'b>(
    record: &mut WaitRecord<'_>,
    output: Option<&mut Output>,
    file: &WaitFile,
    buffer: &'b mut [u8; RECORD_BYTES],
) -> &'b [u8] {
    if let Some(output) = output {
        output.drain();
        record.output_dropped_bytes = output.dropped_bytes();
        record.output_removed_bytes = output.removed_bytes();
    }
    let bytes = wait_file::format(record, buffer).unwrap_or_default();
    let _ = file.write(bytes);
    bytes
}

fn number(error: &SpawnError) -> (u8, i32) {
    match error {
        SpawnError::Fork(error) => (0, error.raw_os_error().unwrap_or(sexton_process::EIO)),
        other => other.step().map_or((0, sexton_process::EIO), |(stage, errno)| (stage as u8, errno)),
    }
}

fn prepare(request: SpawnRequest, output: OwnedFd) -> io::Result<Spawn> {
    let mut environment = Vec::with_capacity(request.environment.len() / 2);
    let mut words = request.environment.into_iter();
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        environment.push((name, value));
    }
    let no_core = (!request.core).then(sexton_process::no_core);
    Ok(Spawn {
        program: request.program,
        arguments: request.arguments,
        environment,
        folder: Some(request.folder).filter(|folder: &OsString| !folder.is_empty()).map(PathBuf::from),
        descriptors: vec![(1, output.try_clone()?), (2, output)],
        cgroup_procs: request.cgroup_procs.into_iter().map(PathBuf::from).collect(),
        limits: no_core.into_iter().chain(request.limits).collect(),
        oom_score_adj: Some(request.oom_score_adj),
        memory_nodes: request.memory_nodes,
        umask: Some(request.umask),
        own_session: true,
    })
}
