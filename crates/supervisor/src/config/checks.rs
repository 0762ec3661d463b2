//! Values that are each right and cannot be meant together.

use sexton_config::setting::{duration_text, size_text};
use sexton_config::{Contradiction, Effective, Origin};
use sexton_model::units::Bytes;

use super::sections::{Config, Hook};
use super::values::{CgroupCreate, Quiesce, Step};

/// Variables that the supervisor sets for every run.
const OWN_VARIABLES: [&str; 5] = [
    "NOTIFY_SOCKET",
    "SEXTON_MEMORY_BUDGET_BYTES",
    "SEXTON_POOL_TABLE",
    "SEXTON_PROVER_SOCKET",
    "SEXTON_RUN_ID",
];

/// All contradictions of a configuration.
pub fn contradictions(config: &Config, effective: &[Effective]) -> Vec<Contradiction> {
    let mut found = Found { effective, all: Vec::new() };
    prover(config, &mut found);
    restart(config, &mut found);
    stop(config, &mut found);
    memory(config, &mut found);
    cgroup(config, &mut found);
    control(config, &mut found);
    for (index, one) in config.hooks.iter().enumerate() {
        hook(index, one, &mut found);
    }
    found.all
}

struct Found<'a> {
    effective: &'a [Effective],
    all: Vec<Contradiction>,
}

impl Found<'_> {
    /// `keys`: the one to blame first.
    fn add<K: Into<String>>(&mut self, keys: impl IntoIterator<Item = K>, message: impl Into<String>) {
        let keys = keys.into_iter().map(Into::into).collect();
        self.all.push(Contradiction { keys, message: message.into() });
    }

    /// Whether somebody has set it, and not we ourselves.
    fn is_chosen(&self, key: &str) -> bool {
        let entry = self.effective.iter().find(|entry| entry.path == key);
        entry.is_some_and(|entry| !matches!(entry.origin, Origin::Default | Origin::Preset { .. }))
    }
}

fn prover(config: &Config, found: &mut Found<'_>) {
    if config.prover.command.first().is_some_and(|program| program.is_empty()) {
        found.add(["prover.command"], "its first word is empty: name a program");
    }
    for name in config.prover.environment.keys() {
        let key = ["prover.environment"];
        if OWN_VARIABLES.contains(&name.as_str()) {
            found.add(key, format!("{name} is set by the supervisor itself: take it out"));
        } else if name.is_empty() || name.contains(['=', '\0']) {
            found.add(key, format!("{name:?} is no name of a variable: take it out"));
        }
    }
}

fn restart(config: &Config, found: &mut Found<'_>) {
    let rules = &config.restart;
    if rules.delay > rules.delay_max && found.is_chosen("restart.delay_max") {
        let (first, most) = (duration_text(rules.delay), duration_text(rules.delay_max));
        found.add(
            ["restart.delay", "restart.delay_max"],
            format!("{first} is longer than delay_max, {most}: shorten it, or lengthen delay_max"),
        );
    }
    if rules.intensity > 0 && rules.period.is_zero() {
        found.add(
            ["restart.period", "restart.intensity"],
            "within 0s nothing is counted: lengthen it, or set intensity to 0",
        );
    }
}

fn stop(config: &Config, found: &mut Found<'_>) {
    let stop = &config.stop;
    let by_command = stop.quiesce == Quiesce::Command;
    if by_command && stop.quiesce_command.is_empty() {
        found.add(["stop.quiesce", "stop.quiesce_command"], "no command is given: set quiesce_command");
    }
    for (key, command) in
        [("stop.quiesce_command", &stop.quiesce_command), ("stop.unquiesce_command", &stop.unquiesce_command)]
    {
        if !command.is_empty() && !by_command {
            found.add([key, "stop.quiesce"], "nobody runs it: set quiesce = \"command\", or take it out");
        } else if command.first().is_some_and(|program| program.is_empty()) {
            found.add([key], "its first word is empty: name a program");
        }
    }
}

fn memory(config: &Config, found: &mut Found<'_>) {
    let memory = &config.memory;
    if let (Some(floor), Some(budget)) = (memory.floor, memory.budget)
        && floor > budget
    {
        let (floor, budget) = (size_text(floor), size_text(budget));
        found.add(
            ["memory.floor", "memory.budget"],
            format!("{floor} is more than the budget, {budget}: lower it, or raise budget"),
        );
    }
    if let Some(template) = &memory.template {
        if template.source == template.target {
            found.add(["memory.template"], "target is source itself: write to another file");
        }
        if memory.budget.is_none() {
            found.add(["memory.template", "memory.budget"], "there is nothing to fill in: set budget");
        }
    }
    ladder(config, found);
}

fn ladder(config: &Config, found: &mut Found<'_>) {
    let memory = &config.memory;
    let key = "memory.ladder";
    if memory.ladder.is_empty() {
        found.add([key], "it has no step: write at least \"100%\"");
    }
    let bytes = |step: &Step| step.bytes(memory.budget);
    for pair in memory.ladder.windows(2) {
        let descends = match (pair[0], pair[1]) {
            (Step::Percent(a), Step::Percent(b)) => a > b,
            (a, b) => bytes(&a).zip(bytes(&b)).is_none_or(|(a, b)| a > b),
        };
        if !descends {
            found.add(
                [key, "memory.budget"],
                "each step must be smaller than the one before: put them in order",
            );
            return;
        }
    }
    let too_large = |step: &&Step| bytes(step).zip(memory.budget).is_some_and(|(step, budget)| step > budget);
    if memory.ladder.iter().any(|step| too_large(&step)) {
        found.add([key, "memory.budget"], "a step is larger than budget: lower it, or raise budget");
    }
    let too_small = |step: &&Step| bytes(step).zip(memory.floor).is_some_and(|(step, floor)| step < floor);
    if found.is_chosen(key) && memory.ladder.iter().any(|step| too_small(&step)) {
        found.add(
            [key, "memory.floor"],
            "a step is smaller than floor and is never tried: raise it, or lower floor",
        );
    }
}

fn cgroup(config: &Config, found: &mut Found<'_>) {
    let cgroup = &config.cgroup;
    let needs_one = [
        ("cgroup.parent", cgroup.parent.is_some()),
        ("cgroup.memory_max", cgroup.memory_max.is_some()),
        ("cgroup.memory_high", cgroup.memory_high.is_some()),
    ];
    for (key, is_set) in needs_one {
        if is_set && cgroup.create == CgroupCreate::Never {
            found.add(
                [key, "cgroup.create"],
                "create is \"never\", and it needs a cgroup: take one of them out",
            );
        }
    }
    if let Some(parent) = &cgroup.parent
        && (!parent.starts_with('/') || parent.split('/').any(|part| part == ".." || part == "."))
    {
        found.add(
            ["cgroup.parent"],
            format!("\"{parent}\" is no path of a cgroup: write it like \"/sexton\""),
        );
    }
    let Some(max) = cgroup.memory_max else { return };
    let below: [(&str, Option<Bytes>); 3] = [
        ("cgroup.memory_high", cgroup.memory_high),
        ("memory.budget", config.memory.budget),
        ("memory.need", config.memory.need),
    ];
    for (key, size) in below {
        if let Some(size) = size.filter(|size| *size > max) {
            let (size, max) = (size_text(size), size_text(max));
            found.add(
                [key, "cgroup.memory_max"],
                format!("{size} is more than cgroup.memory_max, {max}: lower it, or raise memory_max"),
            );
        }
    }
}

fn control(config: &Config, found: &mut Found<'_>) {
    let control = &config.control;
    match (control.listen, &control.token_file) {
        (Some(address), None) if !address.ip().is_loopback() => found.add(
            ["control.listen", "control.token_file"],
            format!(
                "anybody who reaches {address} could stop the prover: set token_file, or listen on 127.0.0.1"
            ),
        ),
        (None, Some(_)) => {
            found.add(
                ["control.token_file", "control.listen"],
                "nobody is asked for it: set listen, or take it out",
            );
        }
        _ => {}
    }
}

fn hook(index: usize, hook: &Hook, found: &mut Found<'_>) {
    let key = |name: &str| [format!("hook[{index}].{name}")];
    if hook.on.is_empty() {
        found.add(key("on"), "no event is named: write for example on = [\"run_ended\"]");
    }
    if hook.command.first().is_none_or(|program| program.is_empty()) {
        found.add(key("command"), "no program is named: write command = [PROGRAM, ...]");
    }
    if hook.timeout.is_zero() {
        found.add(key("timeout"), "it would be killed at once: give it some time");
    }
}
