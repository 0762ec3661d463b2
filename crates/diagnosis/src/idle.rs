//! Whether a prover that is to be stopped has finished its work.
//!
//! Our engine says so. cuzk does not: it has no quiesce, a request that it has accepted is on no list until its input is
//! parsed and its key is read, and jobs that failed are listed for ever. So with clients stopped one waits until nothing is
//! open *and nothing at all has changed for a while*, its own account of memory included, which a key being read moves.

use std::time::Duration;

use sexton_model::exit::InFlight;
use sexton_model::pipeline::{Buffers, Counters, PartitionState, PipelineJob, PipelineStatus, WorkerState};

use crate::progress::{JOBS_MAX, is_open, is_working, named, states_of};

/// How long a page must stay as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Where no job is open.
    pub settle: Duration,
    /// Where open jobs look as cuzk's failed ones do: begun, and in nobody's hand.
    pub abandoned: Duration,
}

/// What is left to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Idle {
    /// Work goes on, or may.
    No {
        /// Open jobs.
        in_flight: usize,
    },
    /// Nothing is left.
    Yes {
        /// Jobs that are still listed as open and that nobody works on, at most [`JOBS_MAX`].
        abandoned: Vec<InFlight>,
    },
}

/// Follows one prover until it is idle.
#[derive(Debug, Clone)]
pub struct Settling {
    patience: Patience,
    last: Option<(Duration, Page)>,
}

/// All of a status page that changes by work, and not by time alone.
#[derive(Debug, Clone, PartialEq)]
struct Page {
    jobs: Vec<(String, Vec<PartitionState>)>,
    workers: Vec<WorkerState>,
    counters: Counters,
    buffers: Buffers,
    used_bytes: u64,
    synthesizing: u32,
    keys: usize,
}

impl Page {
    fn of(status: &PipelineStatus) -> Self {
        let mut jobs: Vec<_> =
            status.pipelines.iter().map(|job| (job.job_id.clone(), states_of(job))).collect();
        // cuzk lists them in no order.
        jobs.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self {
            jobs,
            workers: status.gpu_workers.iter().map(|worker| worker.state).collect(),
            counters: status.counters.clone(),
            buffers: status.buffers.clone(),
            used_bytes: status.memory.used_bytes,
            synthesizing: status.synthesis.active,
            keys: status.allocations.srs.len() + status.allocations.pce.len(),
        }
    }
}

impl Settling {
    /// Nothing is known yet.
    pub fn new(patience: Patience) -> Self {
        Self { patience, last: None }
    }

    /// The prover said this at `now`, on any clock that does not go back.
    pub fn look(&mut self, now: Duration, status: &PipelineStatus) -> Idle {
        let page = Page::of(status);
        let since = match &self.last {
            Some((since, last)) if *last == page => *since,
            _ => now,
        };
        self.last = Some((since, page));
        let still = now.saturating_sub(since);
        let open: Vec<&PipelineJob> = status.pipelines.iter().filter(|job| is_open(job)).collect();
        let begun = |job: &&PipelineJob| job.partitions_done > 0;
        let idle = !is_working(status)
            && status.counters.queue_depth == 0
            && if open.is_empty() {
                still >= self.patience.settle
            } else {
                open.iter().all(begun) && still >= self.patience.abandoned
            };
        if idle {
            Idle::Yes { abandoned: open.into_iter().take(JOBS_MAX).map(named).collect() }
        } else {
            Idle::No { in_flight: open.len() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::tests::page;

    const PATIENCE: Patience =
        Patience { settle: Duration::from_secs(30), abandoned: Duration::from_secs(120) };

    fn look(settling: &mut Settling, second: u64, page: &PipelineStatus) -> bool {
        matches!(settling.look(Duration::from_secs(second), page), Idle::Yes { .. })
    }

    #[test]
    fn idle_is_what_has_no_work_and_has_settled() {
        let mut settling = Settling::new(PATIENCE);
        assert!(!look(&mut settling, 0, &page(3, &[("a", "dg")])));
        assert!(!look(&mut settling, 10, &page(4, &[("a", "dd")])));
        assert!(!look(&mut settling, 39, &page(4, &[("a", "dd")])));
        assert!(look(&mut settling, 40, &page(4, &[("a", "dd")])));
    }

    #[test]
    fn memory_that_moves_is_a_request_on_no_list_yet() {
        let mut settling = Settling::new(PATIENCE);
        let mut reading_a_key = page(3, &[]);
        assert!(!look(&mut settling, 0, &reading_a_key));
        reading_a_key.memory.used_bytes = 47 << 30;
        assert!(!look(&mut settling, 31, &reading_a_key));
        assert!(look(&mut settling, 61, &reading_a_key));
    }

    #[test]
    fn jobs_that_failed_and_stay_listed_hold_no_drain_and_are_named() {
        let mut settling = Settling::new(PATIENCE);
        let left = page(3, &[("ghost", "ddpp"), ("failed", "pfp")]);
        assert_eq!(settling.look(Duration::ZERO, &left), Idle::No { in_flight: 1 });
        assert!(!look(&mut settling, 119, &left));
        let Idle::Yes { abandoned } = settling.look(Duration::from_secs(120), &left) else { panic!() };
        assert_eq!(abandoned.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ["ghost"]);
    }

    #[test]
    fn a_job_that_waits_for_its_first_partition_or_in_the_queue_is_never_given_up() {
        let mut settling = Settling::new(PATIENCE);
        assert!(!look(&mut settling, 0, &page(3, &[("a", "pp")])));
        assert!(!look(&mut settling, 90_000, &page(3, &[("a", "pp")])));
        let mut queued = page(3, &[]);
        queued.counters.queue_depth = 1;
        assert!(!look(&mut settling, 90_001, &queued));
        assert!(!look(&mut settling, 190_000, &queued));
    }
}
