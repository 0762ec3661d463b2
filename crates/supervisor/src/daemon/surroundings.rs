//! What a prover gets besides its command: resource limits, a word for the OOM killer, memory of some NUMA nodes only.
//!
//! The child that waits for its program has all of it already, as far as this host allowed it: so what is missing is
//! looked up there ([`Surroundings::missing_of`]), and said.

use std::fs;

use sexton_process::ResourceLimit;
use sexton_process::limits::{self, UNLIMITED};

use crate::config::sections as config;
use crate::config::values::{Amount, Resource};

/// The `[cgroup]` section, as far as it is about the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// −1000 (never the OOM killer's) to 1000 (its first).
    pub oom_score_adj: i32,
    /// Its memory comes from these nodes only, whatever the kernel would prefer. All where empty.
    pub numa_nodes: Vec<u32>,
    /// The supervisor's own where not named.
    pub limits: Vec<ResourceLimit>,
}

impl Surroundings {
    /// From sexton.toml.
    pub fn of(config: &config::Cgroup) -> Self {
        let limits = config.limits.iter().filter_map(|(Resource(name), amount)| {
            let most = match amount {
                Amount::Unlimited => UNLIMITED,
                Amount::Of(number) => *number,
            };
            Some(ResourceLimit { resource: limits::number(name)?, soft: most, hard: most })
        });
        Self {
            oom_score_adj: config.oom_score_adj.0,
            numa_nodes: config.numa_nodes.as_ref().map(|nodes| nodes.0.clone()).unwrap_or_default(),
            limits: limits.collect(),
        }
    }

    /// What the held child `pid` does not have of it, and why, a sentence each. What could not be done without at all has
    /// failed the start before ([`sexton_process::Stage::MemoryPolicy`]).
    pub fn missing_of(&self, pid: i32) -> Vec<String> {
        let limits = self.limits.iter().filter_map(|wish| limit_missing(pid, *wish));
        self.score_missing(pid).into_iter().chain(limits).collect()
    }

    fn score_missing(&self, pid: i32) -> Option<String> {
        let text = fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).ok()?;
        let score: i32 = text.trim().parse().ok()?;
        (score != self.oom_score_adj).then(|| {
            format!(
                "oom_score_adj stays at {score} instead of {}: to lower it takes CAP_SYS_RESOURCE",
                self.oom_score_adj
            )
        })
    }
}

fn limit_missing(pid: i32, wish: ResourceLimit) -> Option<String> {
    let has = limits::of(pid, wish.resource).ok()?;
    (has.soft < wish.soft || has.hard < wish.hard).then(|| {
        let name = limits::name(wish.resource).unwrap_or("?");
        let (wished, hard) = (shown(wish.soft.max(wish.hard)), shown(has.hard));
        format!("limits.{name} is {hard} instead of {wished}: to go above our own takes CAP_SYS_RESOURCE")
    })
}

fn shown(value: u64) -> String {
    if value == UNLIMITED { "unlimited".to_owned() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use sexton_process::Spawn;

    use super::*;

    #[test]
    fn what_the_child_does_not_have_is_named_with_what_it_takes() {
        let nofile = limits::number("nofile").unwrap();
        let wish = |soft, hard| ResourceLimit { resource: nofile, soft, hard };
        let child = Spawn {
            program: "/bin/true".into(),
            limits: vec![wish(64, 64)],
            oom_score_adj: Some(300),
            ..Default::default()
        };
        let held = child.start().unwrap();
        let surroundings =
            |limit, oom_score_adj| Surroundings { oom_score_adj, limits: vec![limit], ..Default::default() };
        assert_eq!(surroundings(wish(64, 64), 300).missing_of(held.pid()), Vec::<String>::new());
        let missing = surroundings(wish(64, UNLIMITED), -17).missing_of(held.pid());
        assert_eq!(
            missing,
            [
                "oom_score_adj stays at 300 instead of -17: to lower it takes CAP_SYS_RESOURCE",
                "limits.nofile is 64 instead of unlimited: to go above our own takes CAP_SYS_RESOURCE"
            ]
        );
    }
}
