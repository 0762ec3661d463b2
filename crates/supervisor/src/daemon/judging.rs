//! Gathers what is known of an ending, and judges it.

use std::time::Duration;

use sexton_diagnosis::death::{Facts, KernelLog, OwnSignal, memory as oom};
use sexton_host::cgroup::{self};
use sexton_host::files::Files;
use sexton_host::kernel_log as log;
use sexton_host::memory;
use sexton_host::userspace_killers::oomd_marks;
use sexton_model::Timestamp;
use sexton_model::reading::Reading;
use sexton_model::run::RunRecord;
use sexton_model::wait::WaitStatus;

use super::live::explain;
use super::tracking::{self, Tracked};
use crate::keeper::evidence;
use crate::keeper::wait_file::WaitRecord;
use crate::runs::RunDir;

/// How often the kernel log is read again for the line of a kill that the counter has shown already: the kernel counts
/// and kills before it prints.
const LINE_RETRIES: u32 = 100;
const LINE_INTERVAL: Duration = Duration::from_millis(5);

/// Everything that is known of an ending. What cannot be read is unreadable in it, never left out as if it said no.
pub fn facts(
    dir: &RunDir,
    run: &RunRecord,
    wait: Option<&WaitRecord<'_>>,
    own_signals: Vec<OwnSignal>,
) -> Facts {
    let at = wait
        .and_then(|wait| Timestamp::from_nanosecond(wait.ended_at_unix_ns.into()).ok())
        .unwrap_or_else(Timestamp::now);
    let status = wait.map_or(WaitStatus::UNKNOWN, |wait| wait.wait);
    let mut facts = Facts::of(status, at);
    facts.own_signals = own_signals;
    facts.start_error = wait.and_then(|wait| wait.start_error).map(|error| explain(error, run));
    facts.output = match dir.last_words() {
        Ok((words, _)) => Reading::Value(words),
        Err(error) => Reading::unreadable(
            sexton_model::reading::ObstacleKind::Failed,
            format!("{}: {error}", dir.output_file().display()),
        ),
    };
    if facts.start_error.is_some() {
        return facts;
    }
    if let Ok(Some(tracked)) = crate::runs::read_json::<Tracked>(dir.tracking_file()) {
        add_tracked(&mut facts, dir, run, &tracked);
    }
    facts
}

fn add_tracked(facts: &mut Facts, dir: &RunDir, run: &RunRecord, tracked: &Tracked) {
    let at_death = Files::Snapshot(evidence::read(dir));
    let identity = run.identity.as_ref();
    facts.tasks = tracked.tasks(identity.map(|id| id.pid), identity.map(|id| id.pid_namespace));
    facts.memberships = tracked.memberships(&at_death);
    facts.cgroup_last_seen_seconds = Some(facts.at.duration_since(tracked.looked_at).as_secs_f64().max(0.0));
    facts.vmstat_oom_kills = memory::vmstat(&at_death)
        .and_then(|vmstat| vmstat.oom_kill)
        .and_then(|now| tracked.vmstat_oom_kill.clone().map(|then| now.saturating_sub(then)));
    facts.userspace_killer = userspace_killer(tracked);
    for _ in 0..LINE_RETRIES {
        facts.kernel_log = kernel_log(tracked);
        if !oom::line_is_missing(facts) {
            break;
        }
        std::thread::sleep(LINE_INTERVAL);
    }
}

fn kernel_log(tracked: &Tracked) -> Reading<KernelLog> {
    tracked.log_mark.clone().and_then(|mark| {
        tracking::kernel_log()
            .since(&mark)
            .map(|window| KernelLog { events: log::events(&window), whole: window.is_whole() })
    })
}

/// systemd-oomd marks the cgroup whose processes it killed, or one above.
fn userspace_killer(tracked: &Tracked) -> Reading<String> {
    let Some(stay) = tracked.stays.last() else { return Reading::Absent };
    let located = cgroup::locate(&Files::system(), &stay.lines);
    let Reading::Value(hierarchy) = located else { return Reading::Absent };
    for level in hierarchy.levels() {
        if let Reading::Value(kills) = oomd_marks(&level.folder).kills
            && kills > 0
        {
            return Reading::Value(format!("systemd-oomd marked {} with {kills} kills", level.path));
        }
    }
    Reading::Absent
}
