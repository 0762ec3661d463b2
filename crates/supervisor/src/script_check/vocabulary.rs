//! What is known about programs by name: whose status says something, and whose does not.

use super::syntax::{Block, Command, Kind, List, Operator, Pipeline, Simple, Statement};

/// Builtins and programs that end with 0 whatever happened before: nobody who reads `$?` after one wants theirs.
const QUIET: &str = ": true echo printf set unset sleep trap shift shopt umask hash";

/// Pass their input on for the record: the end of a pipeline that keeps a log.
const LOGGERS: &str = "tee logger ts cat systemd-cat svlogd multilog s6-log rotatelogs cronolog tai64n tai64nlocal spipe pv \
    ccze grcat annotate-output";

/// Rewrite their input; they fail on wrong use only.
const FILTERS: &str = "sed awk gawk mawk cut tr head tail sort uniq nl fold fmt column wc xargs rev tac expand paste \
    strings less more stdbuf";

/// Programs whose status is an answer or a formality, not the outcome of work.
const ANSWERS: &str = "[ test grep egrep fgrep zgrep rg diff cmp command which type hash getent pgrep pidof expr false read \
    mountpoint comm let getopts systemctl dpkg-query";

/// Programs that hardly ever fail: losing their status loses nothing.
const STEADY: &str = "ls ps env date uname hostname id whoami pwd dirname basename nproc seq yes getconf locale tty stty \
    arch logname printenv history jobs declare dmesg uptime free df cat tee ts logger find readlink \
    realpath stat tput clear wait";

/// Programs that take away what may be gone already, or ask what may go unanswered: their failure is expected.
const CLEANERS: &str = "rm rmdir kill pkill killall umount unlink losetup fuser popd deluser delgroup userdel groupdel rmmod \
    chmod chown mkdir cd ln touch invoke-rc.d update-rc.d stty renice ulimit sync db_go db_input db_stop";

/// Run another program in their place.
const PREFIXES: &str = "sudo nice ionice stdbuf unbuffer builtin time chronic";

impl Simple {
    /// The program that does the work: `sudo -n tee f` is a `tee`.
    pub(super) fn program(&self) -> &str {
        let mut name = self.name.as_str();
        let mut words = self.arguments.iter();
        while has(PREFIXES, file_name(name)) {
            let Some(word) = words.find(|word| !word.text.starts_with('-') && !word.text.contains('='))
            else {
                break;
            };
            name = word.literal.as_deref().unwrap_or_default();
        }
        file_name(name)
    }

    fn is_one_of(&self, names: &str) -> bool {
        has(names, self.program())
    }
}

fn has(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|known| known == name)
}

fn file_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// `true` or `:`.
pub(super) fn is_true(command: &Command) -> bool {
    command.simple().is_some_and(|simple| matches!(simple.program(), "true" | ":"))
}

/// Writes a message, not a file.
pub(super) fn is_message(command: &Command) -> bool {
    let speaks = command.simple().is_some_and(|simple| matches!(simple.program(), "echo" | "printf"));
    speaks && !command.opens_file()
}

/// A test script that skips what the machine lacks means to succeed.
pub(super) fn says_skip(command: &Command, source: &str) -> bool {
    is_message(command) && command.span.of(source).to_ascii_lowercase().contains("skip")
}

/// Its status is 0 and says nothing about what came before. A write to a file may fail, and one may want to know.
pub(super) fn is_quiet(command: &Command) -> bool {
    command.simple().is_some_and(|simple| simple.is_one_of(QUIET)) && !command.opens_file()
}

/// The end of a pipeline that keeps a log.
pub(super) fn is_logger(command: &Command) -> bool {
    command.simple().is_some_and(|simple| simple.is_one_of(LOGGERS))
}

/// The end of a pipeline whose own status is of no interest: loggers, filters that do not decide, loops that print.
pub(super) fn passes_on(command: &Command, source: &str) -> bool {
    match &command.kind {
        Kind::Simple(simple) if simple.is_one_of(LOGGERS) => true,
        // `awk '{ … exit 1 }'` and `sed q5` decide something.
        // So may a program that comes from a variable.
        Kind::Simple(simple) if simple.is_one_of(FILTERS) => {
            let text = command.span.of(source);
            let computed = simple.program().ends_with("awk") && text.contains("\"$");
            !computed && !decides(text)
        }
        Kind::Loop { .. } | Kind::Group(_) => !decides(command.span.of(source)),
        _ => false,
    }
}

fn decides(text: &str) -> bool {
    ["exit", "return", "grep", "false", "break", "test ", "[ ", "xargs"]
        .iter()
        .any(|word| text.contains(word))
}

/// It was started to take something away, or to bring about what may already be so.
pub(super) fn is_cleaner(command: &Command) -> bool {
    command.simple().is_some_and(|simple| simple.is_one_of(CLEANERS))
}

/// Its status answers a question.
pub(super) fn is_answer(command: &Command) -> bool {
    match &command.kind {
        Kind::Test => true,
        Kind::Simple(simple) => simple.is_one_of(ANSWERS),
        _ => false,
    }
}

/// Losing its status can lose a failure.
pub(super) fn command_can_fail(command: &Command) -> bool {
    match &command.kind {
        Kind::Simple(simple) => {
            let known = [QUIET, FILTERS, ANSWERS, STEADY].iter().any(|names| simple.is_one_of(names));
            !known && !matches!(simple.program(), "exit" | "return" | "kill" | "rm")
        }
        Kind::Group(block) | Kind::Subshell(block) => block_can_fail(block),
        Kind::Assignment => command.substitution().is_some_and(block_can_fail),
        Kind::Loop { body, .. } | Kind::For(body) => block_can_fail(body),
        Kind::If { arms, otherwise } => {
            arms.iter().any(|(_, body)| block_can_fail(body))
                || otherwise.as_ref().is_some_and(block_can_fail)
        }
        Kind::Case(items) => items.iter().any(block_can_fail),
        Kind::Test | Kind::Declaration(_) | Kind::Function { .. } | Kind::Opaque => false,
    }
}

/// One of its commands can fail.
pub(super) fn pipeline_can_fail(pipeline: &Pipeline) -> bool {
    pipeline.stages.iter().any(command_can_fail)
}

/// It may end with the failure of work: `cmd | grep -q x` ends with an answer.
pub(super) fn ends_as_work(pipeline: &Pipeline) -> bool {
    let answers = pipeline.stages.last().is_some_and(is_answer);
    pipeline_can_fail(pipeline) && !answers
}

/// The block can end with a failure. `cmd || …` has seen to it.
pub(super) fn block_can_fail(block: &Block) -> bool {
    block.statements.last().is_some_and(|last| !last.background && list_can_fail(&last.list))
}

/// See [`block_can_fail`].
pub(super) fn list_can_fail(list: &List) -> bool {
    let handled = list.rest.iter().any(|(operator, _)| *operator == Operator::Or);
    !handled && pipeline_can_fail(list.last())
}

/// Ends with 0 for certain, and goes on: `true`, `echo failed`, `{ echo failed; true; }`.
pub(super) fn hides_failure(command: &Command) -> bool {
    match &command.kind {
        Kind::Group(block) => {
            let hides = |statement: &Statement| statement.command().is_some_and(hides_failure);
            !block.statements.is_empty() && block.statements.iter().all(hides)
        }
        _ => (is_true(command) || is_message(command)) && !command.reads_status(),
    }
}
