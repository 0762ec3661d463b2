//! The supervisor's side of the connection to its keeper.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream as StdStream};
use std::path::Path;
use std::time::Duration;

use sexton_process::{Pidfd, Spawn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::keeper::wire::{self, FromKeeper, PROTOCOL, Phase, ToKeeper};
use crate::keeper::{ARGV0, CONNECTION_FD, LISTENER_FD};

/// How long a keeper may take for an answer that needs no work of it.
const PATIENCE: Duration = Duration::from_secs(10);

/// A keeper that cannot be made or talked to.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// No process.
    #[error("cannot start the keeper: {0}")]
    Start(String),
    /// A break in the connection.
    #[error("lost the keeper: {0}")]
    Lost(#[from] io::Error),
    /// It does not answer.
    #[error("the keeper does not answer; is it stopped? (`ps -o pid,stat,wchan:32,args -C {ARGV0}`)")]
    Silent,
    /// It speaks another protocol.
    #[error(
        "the keeper speaks version {0} of the protocol, this supervisor {PROTOCOL}: stop its prover first"
    )]
    Protocol(u32),
    /// It says something that makes no sense here.
    #[error("the keeper answered {0} out of turn")]
    OutOfTurn(String),
}

/// What a keeper held when the connection was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeeperState {
    /// Its PID.
    pub keeper_pid: i32,
    /// What it held.
    pub phase: Phase,
    /// PID of the run, 0 when idle.
    pub pid: i32,
    /// Its id.
    pub run_id: String,
}

/// A connection to a keeper.
#[derive(Debug)]
pub struct Link {
    stream: UnixStream,
    received: Vec<u8>,
    /// Handle on the keeper's process.
    pub pidfd: Pidfd,
    /// What it held at first.
    pub state: KeeperState,
}

impl Link {
    /// Starts a keeper that listens on `socket`.
    ///
    /// # Errors
    /// [`LinkError`].
    pub async fn start(socket: &Path, name: &str) -> Result<Self, LinkError> {
        let failed = |what: &str, error: &dyn std::fmt::Display| LinkError::Start(format!("{what}: {error}"));
        // Nobody answers there, as `find` has found out; the lock makes this supervisor the only one.
        match std::fs::remove_file(socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(&socket.display().to_string(), &error));
            }
            _ => {}
        }
        let listener =
            UnixListener::bind(socket).map_err(|error| failed(&socket.display().to_string(), &error))?;
        let (ours, theirs) = StdStream::pair().map_err(|error| failed("socketpair", &error))?;
        let spawn = Spawn {
            program: "/proc/self/exe".into(),
            arguments: vec![ARGV0.into(), name.into()],
            environment: std::env::vars_os().filter(|(variable, _)| variable == "PATH").collect(),
            folder: Some("/".into()),
            descriptors: vec![(LISTENER_FD, OwnedFd::from(listener)), (CONNECTION_FD, OwnedFd::from(theirs))],
            own_session: true,
            ..Default::default()
        };
        let held = spawn.start().map_err(|error| failed("fork", &error))?;
        held.release().1.map_err(|error| failed("exec", &error))?;
        Self::greet(ours).await
    }

    /// Connects to a keeper that an earlier supervisor left; `None` where there is none.
    ///
    /// # Errors
    /// [`LinkError`].
    pub async fn find(socket: &Path) -> Result<Option<Self>, LinkError> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            match StdStream::connect(socket) {
                Ok(stream) => match Self::greet(stream).await {
                    // It was just leaving, or dying: soon nobody listens there.
                    Err(LinkError::Lost(_)) if tokio::time::Instant::now() < deadline => {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    other => return other.map(Some),
                },
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) =>
                {
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn greet(stream: StdStream) -> Result<Self, LinkError> {
        stream.set_nonblocking(true)?;
        let mut stream = UnixStream::from_std(stream)?;
        let mut received = Vec::new();
        let message = tokio::time::timeout(PATIENCE, receive(&mut stream, &mut received))
            .await
            .map_err(|_| LinkError::Silent)??;
        let FromKeeper::State { protocol, keeper_pid, phase, pid, run_id } = message else {
            return Err(LinkError::OutOfTurn(format!("{message:?}")));
        };
        if protocol != PROTOCOL {
            return Err(LinkError::Protocol(protocol));
        }
        let pidfd = Pidfd::open(keeper_pid)?;
        Ok(Self { stream, received, pidfd, state: KeeperState { keeper_pid, phase, pid, run_id } })
    }

    /// Sends a message.
    ///
    /// # Errors
    /// A break in the connection.
    pub async fn send(&mut self, message: &ToKeeper) -> io::Result<()> {
        self.stream.write_all(&message.encode()).await
    }

    /// The next message. Cancel-safe: what was received of it is kept.
    ///
    /// # Errors
    /// A break in the connection, also the keeper's end.
    pub async fn receive(&mut self) -> io::Result<FromKeeper> {
        receive(&mut self.stream, &mut self.received).await
    }

    /// The answer to what was just sent.
    ///
    /// # Errors
    /// [`LinkError::Silent`] after ten seconds.
    pub async fn answer(&mut self) -> Result<FromKeeper, LinkError> {
        Ok(tokio::time::timeout(PATIENCE, self.receive()).await.map_err(|_| LinkError::Silent)??)
    }
}

async fn receive(stream: &mut UnixStream, received: &mut Vec<u8>) -> io::Result<FromKeeper> {
    let malformed = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    loop {
        if let Some((body, length)) = wire::split(received).map_err(malformed)? {
            let message = FromKeeper::decode(body).map_err(malformed)?;
            received.drain(..length);
            return Ok(message);
        }
        if stream.read_buf(received).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// The environment for a prover: ours, less what is meant for us alone, plus what it is told.
pub fn prover_environment(told: &[(&str, OsString)]) -> Vec<OsString> {
    // sd_notify(3), sd_listen_fds(3), sd_watchdog_enabled(3): a child that answers in our place confuses the manager.
    const OURS: [&str; 6] =
        ["NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_USEC", "WATCHDOG_PID"];
    let kept = std::env::vars_os().filter(|(name, _)| {
        !OURS.iter().any(|ours| name == ours) && !told.iter().any(|(told, _)| name == told)
    });
    let told = told.iter().map(|(name, value)| (OsString::from(name), value.clone()));
    kept.chain(told).flat_map(|(name, value)| [name, value]).collect()
}
