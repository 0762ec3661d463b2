//! How long it takes from a kill to what is known of it, beside what a bare parent needs.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::PATIENCE;
use crate::{Skip, Supervised, fixture_path, wait_for};

/// Medians, each from kill(2) on.
#[derive(Debug, Clone, Copy)]
pub struct Latency {
    /// Deaths.
    pub samples: usize,
    /// Until `waitpid` returns to a parent that does nothing else.
    pub bare_waitpid: Duration,
    /// Until the keeper's record is on the disk, synced and under its name.
    pub durable_record: Duration,
    /// Until the supervisor's verdict is on the disk.
    pub verdict: Duration,
}

/// Measures.
///
/// # Errors
/// Where there is nothing to measure.
#[track_caller]
pub fn measure(samples: usize) -> Result<Latency, Skip> {
    let (mut bare, mut durable, mut verdict) = (Vec::new(), Vec::new(), Vec::new());
    // In turns, so that whatever else the machine does falls on both alike.
    let place = Supervised::new();
    let program = fixture_path().display().to_string();
    let flags = ["--restart", "always", "--backoff", "1ms", "--backoff-max", "1ms", "--intensity", "0"];
    let _running = place.run(&flags, &[&program, "linger"]);
    for sample in 0..samples {
        bare.push(bare_waitpid(&program));
        let status = wait_for(PATIENCE, "a living prover", || {
            place.status().filter(|status| status.pid.is_some() && status.restarts == sample as u64)
        });
        let (pid, run_id) = (status.pid.unwrap_or_default(), status.run_id.unwrap_or_default());
        let run = place.state().join("runs").join(run_id);
        let begin = Instant::now();
        place.kill(pid);
        durable.push(until_there(&run.join("wait.json"), begin));
        verdict.push(until_there(&run.join("exit.json"), begin));
    }
    let median = |mut times: Vec<Duration>| {
        times.sort();
        times.get(times.len() / 2).copied().ok_or_else(|| Skip("no samples".to_owned()))
    };
    Ok(Latency {
        samples,
        bare_waitpid: median(bare)?,
        durable_record: median(durable)?,
        verdict: median(verdict)?,
    })
}

fn bare_waitpid(program: &str) -> Duration {
    let mut child = Command::new(program)
        .arg("linger")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the fixture program starts");
    let mut ready = [0; 1];
    let mut stdout = child.stdout.take().expect("a pipe");
    std::io::Read::read_exact(&mut stdout, &mut ready).expect("it says that it is there");
    let begin = Instant::now();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL).expect("our own child");
    child.wait().expect("our own child");
    begin.elapsed()
}

/// Looks as often as it can: a pause would be most of what is measured.
fn until_there(path: &Path, begin: Instant) -> Duration {
    while !path.exists() {
        assert!(begin.elapsed() < PATIENCE, "{} does not come", path.display());
        std::hint::spin_loop();
    }
    begin.elapsed()
}
