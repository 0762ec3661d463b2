//! What will the next run need, going by earlier ones?

use sexton_model::gate::{Need, NeedSource, Observation};

/// Observations that are kept and gone by: a need that rose once is remembered for so many runs.
pub const OBSERVATIONS: usize = 8;

/// The need of a run of `command` with `budget`, learned from runs of the same command that became ready.
///
/// The largest peak counts, since a prover must not start into less than it took once. A run with another budget tells
/// what the prover takes *besides* its budget, and that is added to the new one: a prover fills its budget and has some
/// memory outside of it. None: no such run.
pub fn learned(observations: &[Observation], command: &[String], budget: Option<u64>) -> Option<Need> {
    let of_command = || observations.iter().filter(|seen| seen.command == command);
    let same = of_command().filter(|seen| seen.budget_bytes == budget).map(|seen| seen.peak_bytes).max();
    let scaled = || {
        let budget = budget?;
        let other = |seen: &Observation| {
            let overhead = seen.peak_bytes.saturating_sub(seen.budget_bytes?);
            Some(budget.saturating_add(overhead))
        };
        of_command().filter_map(other).max()
    };
    same.or_else(scaled).map(|bytes| Need { bytes, source: NeedSource::Learned })
}

/// What a prover takes besides its budget, by the same observations; 0 where none tells.
pub fn overhead(observations: &[Observation], command: &[String]) -> u64 {
    let besides = |seen: &Observation| Some(seen.peak_bytes.saturating_sub(seen.budget_bytes?));
    observations.iter().filter(|seen| seen.command == command).filter_map(besides).max().unwrap_or(0)
}

/// Adds `seen` and drops the oldest above [`OBSERVATIONS`]. A run that is there already is replaced.
pub fn remember(observations: &mut Vec<Observation>, seen: Observation) {
    observations.retain(|other| other.run_id != seen.run_id);
    observations.push(seen);
    let surplus = observations.len().saturating_sub(OBSERVATIONS);
    observations.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use sexton_model::Timestamp;
    use sexton_model::gate::PeakMeasure;

    use super::*;

    const GIB: u64 = 1 << 30;

    fn seen(run: &str, command: &str, budget: Option<u64>, peak: u64) -> Observation {
        Observation {
            run_id: run.to_owned(),
            at: Timestamp::UNIX_EPOCH,
            command: vec![command.to_owned()],
            budget_bytes: budget,
            peak_bytes: peak,
            measure: PeakMeasure::Charge,
        }
    }

    fn need(observations: &[Observation], command: &str, budget: Option<u64>) -> Option<u64> {
        learned(observations, &[command.to_owned()], budget).map(|need| need.bytes)
    }

    #[test]
    fn the_largest_peak_of_the_same_program_with_the_same_budget() {
        let runs = [
            seen("1", "prover", Some(64 * GIB), 70 * GIB),
            seen("2", "prover", Some(64 * GIB), 3 * GIB),
            seen("3", "other", Some(64 * GIB), 90 * GIB),
        ];
        assert_eq!(
            need(&runs, "prover", Some(64 * GIB)),
            Some(70 * GIB),
            "a run that ended young needs no less"
        );
        assert_eq!(need(&runs, "unknown", Some(64 * GIB)), None);
        assert_eq!(need(&runs, "prover", None), None, "without a budget it may take anything");
    }

    #[test]
    fn another_budget_tells_what_is_taken_besides() {
        let runs = [seen("1", "prover", Some(64 * GIB), 70 * GIB)];
        assert_eq!(need(&runs, "prover", Some(32 * GIB)), Some(38 * GIB));
        assert_eq!(overhead(&runs, &["prover".to_owned()]), 6 * GIB);
        let below = [seen("1", "prover", Some(64 * GIB), 10 * GIB)];
        assert_eq!(need(&below, "prover", Some(32 * GIB)), Some(32 * GIB), "it may fill its budget yet");
    }

    #[test]
    fn only_the_last_runs_are_remembered_and_each_once() {
        let mut runs = Vec::new();
        for number in 0..20 {
            remember(&mut runs, seen(&number.to_string(), "prover", None, number));
        }
        remember(&mut runs, seen("19", "prover", None, 99));
        assert_eq!(runs.len(), OBSERVATIONS);
        assert_eq!(runs.last().map(|seen| seen.peak_bytes), Some(99));
        assert_eq!(runs[0].run_id, "12");
    }
}
