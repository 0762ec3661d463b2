//! The order in which waiting jobs are taken.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use sexton_model::pipeline::Priority;

use super::job::Sequence;

/// Waiting jobs, the most urgent first and equals in order of arrival.
///
/// The key is (priority, sequence). A sequence is given out once in the life of an engine, so no two jobs share a
/// key and none overwrites another.
#[derive(Debug, Default)]
pub struct Queue {
    waiting: BTreeSet<(Reverse<Priority>, Sequence)>,
}

impl Queue {
    /// Adds a job.
    pub fn push(&mut self, priority: Priority, sequence: Sequence) {
        self.waiting.insert((Reverse(priority), sequence));
    }

    /// Takes the most urgent job.
    pub fn pop(&mut self) -> Option<Sequence> {
        self.waiting.pop_first().map(|(_, sequence)| sequence)
    }

    /// Takes one job out of turn. False when it did not wait.
    pub fn remove(&mut self, priority: Priority, sequence: Sequence) -> bool {
        self.waiting.remove(&(Reverse(priority), sequence))
    }

    /// Jobs waiting.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// True when none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Jobs waiting, by priority; every priority is present.
    #[must_use]
    pub fn depth_by_priority(&self) -> BTreeMap<Priority, usize> {
        let mut depth: BTreeMap<_, _> = Priority::ALL.into_iter().map(|priority| (priority, 0)).collect();
        for (Reverse(priority), _) in &self.waiting {
            *depth.entry(*priority).or_default() += 1;
        }
        depth
    }

    /// The job that has waited longest.
    #[must_use]
    pub fn oldest(&self) -> Option<Sequence> {
        self.waiting.iter().map(|(_, sequence)| *sequence).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgent_jobs_come_first_and_equals_in_order_of_arrival() {
        let mut queue = Queue::default();
        let arrivals =
            [Priority::Normal, Priority::Low, Priority::Critical, Priority::Normal, Priority::High];
        for (sequence, priority) in (0..).zip(arrivals) {
            queue.push(priority, sequence);
        }
        assert_eq!((queue.len(), queue.oldest()), (5, Some(0)));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [2, 4, 0, 3, 1]);
    }

    /// A public GPU prover keyed its heap by arrival time: two jobs of one tick, and one caller hung for ever.
    #[test]
    fn jobs_with_equal_priority_never_overwrite_each_other() {
        let mut queue = Queue::default();
        for sequence in 0..1_000 {
            queue.push(Priority::Normal, sequence);
        }
        assert_eq!(queue.depth_by_priority()[&Priority::Normal], 1_000);
        assert_eq!(std::iter::from_fn(|| queue.pop()).count(), 1_000);
    }

    #[test]
    fn a_removed_job_is_never_taken() {
        let mut queue = Queue::default();
        queue.push(Priority::Normal, 0);
        queue.push(Priority::Normal, 1);
        assert!(queue.remove(Priority::Normal, 0));
        assert!(!queue.remove(Priority::Normal, 0));
        assert_eq!((queue.pop(), queue.pop()), (Some(1), None));
    }
}
