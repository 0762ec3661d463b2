//! The start gate and the memory budget, as the loop holds them: what the next start needs, whether that fits, and with which
//! budget it is made.

use std::time::Duration;

use serde_json::json;
use sexton_model::Timestamp;
use sexton_model::cgroup::Limit;
use sexton_model::event::EventKind;
use sexton_model::exit::ExitRecord;
use sexton_model::gate::{GateReport, Need, NeedSource, Observation};
use sexton_model::run::{CgroupPath, RunRecord};
use sexton_model::units::{Bytes, Human};
use tokio::time::Instant;

use super::footprint::Footprint;
use super::gate::{self, Gate};
use super::{Daemon, history};
use crate::config::values::{Amount, CgroupCreate};
use crate::ladder::{self, Ladder, Situation, Steps};
use crate::machine::Input;

/// How often it is looked whether the next run fits: a few files.
const INTERVAL: Duration = Duration::from_millis(500);

/// A start that waits for memory.
#[derive(Debug)]
pub(super) struct Gating {
    since: Instant,
    next_look: Instant,
    need: Option<Need>,
    /// As of the last look.
    report: GateReport,
}

impl Gating {
    /// When the next look is due.
    pub(super) fn due(&self) -> Instant {
        self.next_look
    }

    pub(super) fn report(&self) -> &GateReport {
        &self.report
    }
}

impl Daemon {
    /// The gate for the next start, with what is configured of it.
    fn gate(&self) -> Gate {
        let cgroup = &self.settings.config.cgroup;
        let address_space = cgroup.limits.iter().find(|(resource, _)| resource.0 == "as");
        let mut gate = Gate::system();
        gate.own_cgroup_limit =
            cgroup.memory_max.map(|max| max.0).filter(|_| cgroup.create != CgroupCreate::Never);
        gate.address_space = address_space.map(|(_, amount)| match amount {
            Amount::Unlimited => Limit::Unlimited,
            Amount::Of(bytes) => Limit::Bytes(*bytes),
        });
        gate.nodes = cgroup.numa_nodes.as_ref().map(|nodes| nodes.0.clone());
        gate
    }

    /// The cgroups that the next run will be in, or below.
    fn next_lines(&self, gate: &Gate) -> Vec<CgroupPath> {
        let mut lines = gate.own_lines();
        if let Some(parent) = &self.settings.config.cgroup.parent {
            let of_memory = |line: &&mut CgroupPath| {
                line.controllers.is_empty() || line.controllers.split(',').any(|name| name == "memory")
            };
            lines.iter_mut().filter(of_memory).for_each(|line| line.path.clone_from(parent));
        }
        lines
    }

    /// What the next start needs.
    fn next_need(&self) -> Option<Need> {
        let memory = &self.settings.config.memory;
        let (full, next) = (memory.budget.map(|budget| budget.0), self.next_budget());
        // What is configured is the need at the full budget: a smaller one needs so much less.
        let less = full.zip(next).map_or(0, |(full, next)| full.saturating_sub(next));
        let configured = memory.need.map(|need| need.0.saturating_sub(less));
        let command = super::start::recorded(&self.settings.command);
        gate::need_of(configured, &history::observations(&self.settings.place), &command, next)
    }

    /// The budget of the next start: the ladder's, unless a smaller one was taken for it.
    pub(super) fn next_budget(&self) -> Option<u64> {
        self.budget_once.or_else(|| self.ladder.as_ref().map(Ladder::budget))
    }

    /// Whether the next run fits; else that is looked at again and again.
    pub(super) fn await_memory(&mut self) -> Option<Input> {
        self.budget_once = None;
        self.try_larger_budget();
        let need = self.next_need();
        let now = Instant::now();
        let report = self.check_gate(need);
        let open = lets_start(&report);
        if !open {
            self.log(EventKind::GateShut, None, details(&report));
            self.say(&format!("the start waits for memory: {}", report.summary));
        }
        self.gating = Some(Gating { since: now, next_look: now + INTERVAL, need, report });
        self.go_on_if(open)
    }

    /// Looks again.
    pub(super) fn look_at_gate(&mut self) -> Option<Input> {
        let need = self.gating.as_ref()?.need;
        let report = self.check_gate(need);
        let open = lets_start(&report);
        if let Some(gating) = &mut self.gating {
            gating.next_look = Instant::now() + INTERVAL;
            gating.report = report;
        }
        let input = self.go_on_if(open);
        self.publish();
        input
    }

    fn check_gate(&self, need: Option<Need>) -> GateReport {
        let gate = self.gate();
        let lines = self.next_lines(&gate);
        let releasing = self.drain.as_ref().map(|drain| drain.report());
        gate.check(need, self.settings.config.memory.reserve.0, &lines, releasing)
    }

    fn go_on_if(&mut self, open: bool) -> Option<Input> {
        let gating = self.gating.as_ref().filter(|_| open)?;
        let waited = gating.since.elapsed();
        let (summary, shut) = (gating.report.summary.clone(), !gating.report.open);
        // What never waited is no news, but for a need that was learned and cannot be right.
        if gating.next_look > gating.since + INTERVAL || shut {
            self.log(
                EventKind::GateOpened,
                None,
                json!({"waited_seconds": waited.as_secs_f64(), "summary": summary}),
            );
            if shut {
                self.say(&format!(
                    "the start is tried all the same, since that need was only learned: {summary}"
                ));
            }
        }
        Some(Input::GateOpen)
    }

    /// Its time is over: with the largest budget that fits, or not at all.
    pub(super) fn fit(&mut self) -> Input {
        let Some(gating) = self.gating.take() else { return Input::GateOpen };
        let waited = Human(gating.since.elapsed());
        if let Some(budget) = self.budget_that_fits(gating.need) {
            let text = format!(
                "after {waited} there is not enough for {}: this start takes a budget of {}",
                Bytes(gating.need.map_or(0, |need| need.bytes)),
                Bytes(budget)
            );
            self.budget_once = Some(budget);
            self.say(&text);
            self.log(
                EventKind::GateOpened,
                None,
                json!({"waited_seconds": gating.since.elapsed().as_secs_f64(), "summary": text,
                    "budget_bytes": budget}),
            );
            return Input::GateOpen;
        }
        let text = format!("after {waited} it still does not fit: {}", gating.report.summary);
        self.log(EventKind::GateTimedOut, None, details(&gating.report));
        self.say(&text);
        self.reason = Some(text);
        Input::GateShut
    }

    fn budget_that_fits(&self, need: Option<Need>) -> Option<u64> {
        let ladder = self.ladder.as_ref()?;
        let steps: Vec<u64> =
            ladder.steps().all().iter().copied().filter(|step| *step <= ladder.budget()).collect();
        // What it takes besides its budget, as far as that is known.
        let overhead = need.map_or(0, |need| need.bytes.saturating_sub(ladder.budget()));
        let gate = self.gate();
        let reserve = self.settings.config.memory.reserve.0;
        gate.largest_that_fits(&steps, 0, overhead, reserve, &self.next_lines(&gate))
    }

    /// The ladder for the present configuration, as far as it is known what limits a prover here.
    pub(super) fn load_ladder(&mut self) {
        let Some(steps) = Steps::of(&self.settings.config.memory) else {
            self.ladder = None;
            return;
        };
        let gate = self.gate();
        let headroom = gate.headroom(&self.next_lines(&gate), None);
        let limits = headroom.limits.iter().filter_map(|limit| limit.limit_bytes);
        let situation = Situation::here(limits.min(), steps.all().first().copied().unwrap_or(0));
        let path = self.settings.place.ladder_file();
        self.ladder = Some(Ladder::load(&path, steps, situation, Timestamp::now()));
    }

    /// Up again, where the smaller budget has done for long.
    fn try_larger_budget(&mut self) {
        self.load_ladder();
        let Some(ladder) = &mut self.ladder else { return };
        let Some(from) = ladder.before_start(Timestamp::now()) else { return };
        let to = ladder.budget();
        self.save_ladder();
        self.tell_budget(from, to, "the smaller one has done without trouble for long enough");
    }

    /// What an ending says of the budget that the run had. Returns why no further start can help, if that is so.
    pub(super) fn climb_down(&mut self, record: &ExitRecord, budget: Option<u64>) -> Option<&'static str> {
        let (Some(budget), Some(ladder)) = (budget, &mut self.ladder) else { return None };
        let stable = record.duration_seconds >= self.settings.config.restart.stable_after.as_secs_f64();
        let step = ladder.after(ladder::is_proved(record), budget, stable, Timestamp::now());
        match step {
            ladder::Step::Stays => None,
            ladder::Step::Down { from, to } => {
                self.save_ladder();
                self.tell_budget(from, to, &record.verdict.summary);
                None
            }
            ladder::Step::Exhausted(why) => {
                self.save_ladder();
                Some(why)
            }
        }
    }

    fn tell_budget(&mut self, from: u64, to: u64, why: &str) {
        self.log(EventKind::BudgetChanged, None, json!({"from_bytes": from, "to_bytes": to, "why": why}));
        let (from, to) = (Bytes(from), Bytes(to));
        self.say(&format!("the next start takes a memory budget of {to} instead of {from}"));
    }

    fn save_ladder(&mut self) {
        let path = self.settings.place.ladder_file();
        if let Some(ladder) = &mut self.ladder
            && let Err(error) = ladder.save(&path, Timestamp::now())
        {
            self.say(&format!("cannot write {}: {error}", path.display()));
        }
    }

    /// What a run that was ready took teaches the next start; one that died for lack of memory took less than it needs.
    pub(super) fn learn_need(&self, run: &RunRecord, footprint: &Footprint, record: &ExitRecord) {
        use sexton_model::verdict::Cause;
        let starved = matches!(
            record.verdict.cause,
            Cause::OomOwnLimit
                | Cause::OomAncestorLimit
                | Cause::OomHost
                | Cause::OomUserspace
                | Cause::OomSuspected
        );
        let Some((peak_bytes, measure)) = footprint.peak(record.resources.max_rss_bytes) else { return };
        if starved || peak_bytes == 0 {
            return;
        }
        let seen = Observation {
            run_id: run.run_id.clone(),
            at: record.ended_at,
            command: run.command.clone(),
            budget_bytes: run.budget_bytes,
            peak_bytes,
            measure,
        };
        if let Err(error) = history::remember_need(&self.settings.place, seen) {
            self.say(&format!("cannot write {}: {error}", self.settings.place.need_file().display()));
        }
    }
}

/// A need that was only learned and that no limit here could ever meet cannot be right: it is no reason to stay down.
fn lets_start(report: &GateReport) -> bool {
    let cannot_be = report.need_source == Some(NeedSource::Learned) && !report.can_ever_fit;
    report.open || (cannot_be && report.still_releasing_bytes == 0)
}

fn details(report: &GateReport) -> serde_json::Value {
    json!({"summary": report.summary, "need_bytes": report.need_bytes,
        "headroom_bytes": report.headroom.bytes.value(), "binding_limit": report.binding_limit,
        "eta_seconds": report.eta_seconds})
}
