//! What supervisor and keeper say to each other: frames of a little-endian `u32` length, a kind byte, and a body.
//!
//! A keeper outlives the supervisor that started it, so a newer supervisor may talk to an older keeper: [`PROTOCOL`]
//! rises when a frame changes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use sexton_process::ResourceLimit;

use super::log::Rotation;

/// Version of this protocol, sent in [`FromKeeper::State`].
pub const PROTOCOL: u32 = 2;

/// The longest frame body: the kernel takes no more than 6 MiB of arguments and environment.
pub const FRAME_MAX: usize = 8 << 20;

/// A frame that cannot be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame of supervisor and keeper is malformed")]
pub struct Malformed;

/// What to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpawnRequest {
    /// The run's id.
    pub run_id: String,
    /// The run's folder, holding `output.fifo`.
    pub run_dir: OsString,
    /// A path, or a name for `PATH`.
    pub program: OsString,
    /// `argv`.
    pub arguments: Vec<OsString>,
    /// The whole environment, `NAME`, `VALUE`, `NAME`, …
    pub environment: Vec<OsString>,
    /// Working folder.
    pub folder: OsString,
    /// `cgroup.procs` files to join.
    pub cgroup_procs: Vec<OsString>,
    /// Whether it may dump core.
    pub core: bool,
    /// File mode creation mask.
    pub umask: u32,
    /// Resource limits besides; the keeper's where not named.
    pub limits: Vec<ResourceLimit>,
    /// `oom_score_adj`, as far as allowed.
    pub oom_score_adj: i32,
    /// NUMA nodes that its memory may come from; any where empty.
    pub memory_nodes: Vec<u32>,
    /// When its log is rotated.
    pub rotation: Rotation,
}

/// Supervisor → keeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToKeeper {
    /// Make a held child.
    Spawn(Box<SpawnRequest>),
    /// Its record is durable: run the program.
    Go,
    /// End the held child instead.
    Abandon,
    /// Record these files at the death of the run.
    Watch(Vec<OsString>),
    /// Rotate logs otherwise from now on.
    Rotate(Rotation),
    /// Leave as soon as nothing is left to keep.
    Quit,
}

/// What a keeper holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Nothing.
    Idle,
    /// A child whose program does not run: not yet, or never.
    Held,
    /// A living run.
    Running,
}

/// Keeper → supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromKeeper {
    /// First frame on every connection.
    State {
        /// [`PROTOCOL`] of the keeper.
        protocol: u32,
        /// The keeper's PID.
        keeper_pid: i32,
        /// What it holds.
        phase: Phase,
        /// PID of the run, 0 when idle.
        pid: i32,
        /// Its id, empty when idle.
        run_id: String,
    },
    /// The child is there and waits for `Go`.
    Prepared {
        /// Its PID.
        pid: i32,
    },
    /// There is no child: `stage` 0 stands for the making of the process itself.
    SpawnFailed {
        /// [`sexton_process::Stage`] as its number.
        stage: u8,
        /// The kernel's answer.
        errno: i32,
    },
    /// The program runs.
    Started,
    /// The program does not run; its ending follows as `Ended`.
    ExecFailed {
        /// [`sexton_process::Stage`] as its number.
        stage: u8,
        /// The kernel's answer.
        errno: i32,
    },
    /// The run ended: the bytes of `wait.json`, which is durable where the disk allowed it.
    Ended(Vec<u8>),
}

impl ToKeeper {
    /// The frame, with its length.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        match self {
            Self::Spawn(spawn) => {
                out.byte(b'S');
                out.bytes(spawn.run_id.as_bytes());
                out.text(&spawn.run_dir);
                out.text(&spawn.program);
                out.list(&spawn.arguments);
                out.list(&spawn.environment);
                out.text(&spawn.folder);
                out.list(&spawn.cgroup_procs);
                out.byte(spawn.core.into());
                out.number(spawn.umask);
                out.number(spawn.limits.len() as u32);
                for limit in &spawn.limits {
                    out.number(limit.resource);
                    out.long(limit.soft);
                    out.long(limit.hard);
                }
                out.number(spawn.oom_score_adj as u32);
                out.number(spawn.memory_nodes.len() as u32);
                spawn.memory_nodes.iter().for_each(|node| out.number(*node));
                out.rotation(spawn.rotation);
            }
            Self::Go => out.byte(b'G'),
            Self::Abandon => out.byte(b'A'),
            Self::Watch(paths) => {
                out.byte(b'W');
                out.list(paths);
            }
            Self::Rotate(rotation) => {
                out.byte(b'R');
                out.rotation(*rotation);
            }
            Self::Quit => out.byte(b'Q'),
        }
        out.frame()
    }

    /// From a frame's body.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut body = Reader(body);
        let message = match body.byte()? {
            b'S' => Self::Spawn(Box::new(SpawnRequest {
                run_id: body.string()?,
                run_dir: body.text()?,
                program: body.text()?,
                arguments: body.list()?,
                environment: body.list()?,
                folder: body.text()?,
                cgroup_procs: body.list()?,
                core: body.byte()? != 0,
                umask: body.number()?,
                limits: body.many(|body| {
                    let (resource, soft, hard) = (body.number()?, body.long()?, body.long()?);
                    Ok(ResourceLimit { resource, soft, hard })
                })?,
                oom_score_adj: body.number()? as i32,
                memory_nodes: body.many(Reader::number)?,
                rotation: body.rotation()?,
            })),
            b'G' => Self::Go,
            b'A' => Self::Abandon,
            b'W' => Self::Watch(body.list()?),
            b'R' => Self::Rotate(body.rotation()?),
            b'Q' => Self::Quit,
            _ => return Err(Malformed),
        };
        body.end(message)
    }
}

impl FromKeeper {
    /// The frame, with its length.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        match self {
            Self::State { protocol, keeper_pid, phase, pid, run_id } => {
                out.byte(b'H');
                out.number(*protocol);
                out.number(*keeper_pid as u32);
                out.byte(*phase as u8);
                out.number(*pid as u32);
                out.bytes(run_id.as_bytes());
            }
            Self::Prepared { pid } => {
                out.byte(b'P');
                out.number(*pid as u32);
            }
            Self::SpawnFailed { stage, errno } | Self::ExecFailed { stage, errno } => {
                out.byte(if matches!(self, Self::SpawnFailed { .. }) { b'F' } else { b'X' });
                out.byte(*stage);
                out.number(*errno as u32);
            }
            Self::Started => out.byte(b'R'),
            Self::Ended(record) => {
                out.byte(b'E');
                out.bytes(record);
            }
        }
        out.frame()
    }

    /// From a frame's body.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut body = Reader(body);
        let message = match body.byte()? {
            b'H' => Self::State {
                protocol: body.number()?,
                keeper_pid: body.number()? as i32,
                phase: match body.byte()? {
                    0 => Phase::Idle,
                    1 => Phase::Held,
                    2 => Phase::Running,
                    _ => return Err(Malformed),
                },
                pid: body.number()? as i32,
                run_id: body.string()?,
            },
            b'P' => Self::Prepared { pid: body.number()? as i32 },
            b'F' => Self::SpawnFailed { stage: body.byte()?, errno: body.number()? as i32 },
            b'X' => Self::ExecFailed { stage: body.byte()?, errno: body.number()? as i32 },
            b'R' => Self::Started,
            b'E' => Self::Ended(body.bytes()?.to_vec()),
            _ => return Err(Malformed),
        };
        body.end(message)
    }
}

/// The body of the first whole frame in `buffer`, and how many bytes it takes with its length. `None` until it is whole.
///
/// # Errors
/// [`Malformed`] for a length over [`FRAME_MAX`].
pub fn split(buffer: &[u8]) -> Result<Option<(&[u8], usize)>, Malformed> {
    let Some((length, rest)) = buffer.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > FRAME_MAX {
        return Err(Malformed);
    }
    Ok(rest.get(..length).map(|body| (body, 4 + length)))
}

struct Writer(Vec<u8>);

impl Writer {
    fn new() -> Self {
        Self(vec![0; 4])
    }

    fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    fn number(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    fn long(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, value: &[u8]) {
        self.number(value.len() as u32);
        self.0.extend(value);
    }

    fn text(&mut self, value: &OsStr) {
        self.bytes(value.as_bytes());
    }

    fn list(&mut self, values: &[OsString]) {
        self.number(values.len() as u32);
        values.iter().for_each(|value| self.text(value));
    }

    fn rotation(&mut self, value: Rotation) {
        self.long(value.size);
        self.long(value.age.as_millis() as u64);
        self.number(value.keep);
    }

    fn frame(mut self) -> Vec<u8> {
        let length = (self.0.len() - 4) as u32;
        self.0[..4].copy_from_slice(&length.to_le_bytes());
        self.0
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Result<u8, Malformed> {
        let (byte, rest) = self.0.split_first().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*byte)
    }

    fn number(&mut self) -> Result<u32, Malformed> {
        let (number, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*number))
    }

    fn long(&mut self) -> Result<u64, Malformed> {
        let (number, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*number))
    }

    fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.number()? as usize;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<OsString, Malformed> {
        Ok(OsString::from_vec(self.bytes()?.to_vec()))
    }

    fn string(&mut self) -> Result<String, Malformed> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| Malformed)
    }

    fn list(&mut self) -> Result<Vec<OsString>, Malformed> {
        self.many(Self::text)
    }

    fn many<T>(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.number()?;
        // Not reserved beforehand: the number may be anything.
        (0..count).map(|_| one(self)).collect()
    }

    fn rotation(&mut self) -> Result<Rotation, Malformed> {
        let (size, age) = (self.long()?, Duration::from_millis(self.long()?));
        Ok(Rotation { size, age, keep: self.number()? })
    }

    fn end<T>(self, message: T) -> Result<T, Malformed> {
        if self.0.is_empty() { Ok(message) } else { Err(Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_message_comes_back_whole() {
        let spawn = SpawnRequest {
            run_id: "r".into(),
            run_dir: "/r".into(),
            program: OsString::from_vec(vec![0xff, b'x']),
            arguments: vec!["a".into(), "".into()],
            environment: vec!["A".into(), "b=c".into()],
            folder: "/".into(),
            cgroup_procs: vec![],
            core: true,
            umask: 0o027,
            limits: vec![ResourceLimit { resource: 7, soft: 1, hard: u64::MAX }],
            oom_score_adj: -17,
            memory_nodes: vec![0, 3],
            rotation: Rotation { size: 1 << 40, age: Duration::from_secs(86_400), keep: 2 },
        };
        for message in [
            ToKeeper::Spawn(Box::new(spawn)),
            ToKeeper::Go,
            ToKeeper::Abandon,
            ToKeeper::Watch(vec!["/proc/vmstat".into()]),
            ToKeeper::Rotate(Rotation { size: 0, age: Duration::from_millis(1), keep: 3 }),
            ToKeeper::Quit,
        ] {
            let frame = message.encode();
            let (body, length) = split(&frame).unwrap().unwrap();
            assert_eq!((ToKeeper::decode(body).unwrap(), length), (message, frame.len()));
            assert_eq!(split(&frame[..frame.len() - 1]), Ok(None));
        }
        let state = FromKeeper::State {
            protocol: PROTOCOL,
            keeper_pid: 7,
            phase: Phase::Held,
            pid: 8,
            run_id: "r".to_owned(),
        };
        for message in [
            state,
            FromKeeper::Prepared { pid: 9 },
            FromKeeper::SpawnFailed { stage: 0, errno: 12 },
            FromKeeper::Started,
            FromKeeper::ExecFailed { stage: 7, errno: 2 },
            FromKeeper::Ended(b"{}".to_vec()),
        ] {
            let frame = message.encode();
            assert_eq!(FromKeeper::decode(split(&frame).unwrap().unwrap().0).unwrap(), message);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_malformed(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (ToKeeper::decode(&bytes), FromKeeper::decode(&bytes), split(&bytes).map(|_| ()));
        }
    }
}
