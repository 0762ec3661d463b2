//! Counts of right and wrong.

use std::fmt;

use serde_json::{Value, json};
use sexton_model::verdict::Cause;

use super::Outcome;

/// Of many outcomes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Outcomes.
    pub all: usize,
    /// Those that are as they must be.
    pub right: usize,
    /// OOM kills of the prover.
    pub oom: usize,
    /// Of these, called so.
    pub oom_named: usize,
    /// Of these, called suspected.
    pub oom_suspected: usize,
    /// Other deaths that were called OOM kills.
    pub oom_invented: usize,
    /// Other deaths that were called suspected.
    pub suspected_in_vain: usize,
    /// Outcomes for which the kernel log had lost lines.
    pub overrun: usize,
}

impl Tally {
    /// Counts one.
    pub fn count(&mut self, outcome: &Outcome) {
        self.all += 1;
        self.right += usize::from(outcome.is_right());
        self.overrun += usize::from(outcome.log_overrun);
        self.count_oom(outcome.cell.death.is_oom(), outcome.record.verdict.cause);
    }

    /// Counts what was said of one death that was or was not an OOM kill.
    pub fn count_oom(&mut self, truth: bool, said: Cause) {
        let named = matches!(said, Cause::OomOwnLimit | Cause::OomAncestorLimit | Cause::OomHost);
        let suspected = said == Cause::OomSuspected;
        self.oom += usize::from(truth);
        self.oom_named += usize::from(truth && named);
        self.oom_suspected += usize::from(truth && suspected);
        self.oom_invented += usize::from(!truth && named);
        self.suspected_in_vain += usize::from(!truth && suspected);
    }

    /// Of the deaths that were called OOM kills, those that were.
    pub fn precision(self) -> f64 {
        part(self.oom_named, self.oom_named + self.oom_invented)
    }

    /// Of the OOM kills, those that were called so, or suspected where nothing could prove them.
    pub fn recall(self) -> f64 {
        part(self.oom_named + self.oom_suspected, self.oom)
    }

    /// For programs.
    pub fn to_json(self) -> Value {
        json!({
            "cells": self.all, "right": self.right, "kernel_log_overrun": self.overrun,
            "oom": {
                "deaths": self.oom, "named": self.oom_named, "suspected": self.oom_suspected,
                "invented": self.oom_invented, "suspected_in_vain": self.suspected_in_vain,
                "precision": self.precision(), "recall": self.recall(),
            },
        })
    }
}

/// 1 where there is nothing to be wrong about.
fn part(some: usize, all: usize) -> f64 {
    if all == 0 { 1.0 } else { some as f64 / all as f64 }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} of {} right, {} with an overrun kernel log", self.right, self.all, self.overrun)?;
        write!(
            f,
            "OOM kills of the prover: {}, named {}, suspected {}; invented {}, suspected in vain {}: precision {:.4}, recall {:.4}",
            self.oom,
            self.oom_named,
            self.oom_suspected,
            self.oom_invented,
            self.suspected_in_vain,
            self.precision(),
            self.recall()
        )
    }
}
