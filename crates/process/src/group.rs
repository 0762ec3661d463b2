//! Ends a process group of our own.

use std::io;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Kills every process of the group that `leader` began with a session of its own ([`crate::Spawn::own_session`]).
///
/// By number, since signals to a group by pidfd take Linux 6.9. `leader` must be a child of the caller that nobody has
/// reaped yet: as long as it is at least a zombie, its number, which is the group's, means no other group.
///
/// # Errors
/// The kernel's; a group that has ended is none.
pub fn kill_group(leader: i32) -> io::Result<()> {
    if leader <= 1 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    match killpg(Pid::from_raw(leader), Signal::SIGKILL) {
        Ok(()) | Err(nix::Error::ESRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spawn;
    use std::io::Read;

    #[test]
    fn a_group_ends_with_what_its_leader_left_in_it() {
        let (mut reader, writer) = io::pipe().unwrap();
        let spawn = Spawn {
            program: "/bin/sh".into(),
            arguments: ["sh", "-c", "sleep 300 & echo started"].map(Into::into).to_vec(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            descriptors: vec![(1, writer.into())],
            own_session: true,
            ..Spawn::default()
        };
        let held = spawn.start().unwrap();
        let leader = held.pid();
        let (pidfd, result) = held.release();
        result.unwrap();
        while !pidfd.has_ended().unwrap() {
            std::thread::yield_now();
        }
        kill_group(leader).unwrap();
        // The end of file comes when the last writer, which is the `sleep`, is gone.
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "started\n");
        pidfd.wait().unwrap();
    }

    #[test]
    fn nobody_is_asked_to_kill_every_process() {
        for pid in [i32::MIN, -1, 0, 1] {
            assert_eq!(kill_group(pid).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{pid}");
        }
    }
}
