//! The rules by name.

use serde::Serialize;

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident $id:literal $summary:literal)*) => {
        /// What can be wrong with a script. The id is stable: comments in scripts name it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub enum Rule {
            $($(#[$doc])* #[serde(rename = $id)] $name,)*
        }

        impl Rule {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The stable id.
            pub fn id(self) -> &'static str {
                match self { $(Self::$name => $id,)* }
            }

            /// The form that it finds, in a few words.
            pub fn summary(self) -> &'static str {
                match self { $(Self::$name => $summary,)* }
            }
        }
    };
}

rules! {
    /// `if ! cmd; then rc=$?`
    NegatedStatus "negated-status" "`$?` behind `!`, as in `if ! cmd; then rc=$?`"
    /// `cmd | tee f; rc=$?`
    PipelineStatus "pipeline-status" "a status taken from `cmd | tee f` without pipefail"
    /// `exec cmd | tee f`
    ExecInPipeline "exec-in-pipeline" "`exec cmd | tee f` without pipefail"
    /// `local x=$(cmd)`
    DeclaredStatus "declared-status" "`local x=$(cmd)` whose status is relied upon"
    /// `cmd & wait`
    BareWait "bare-wait" "`wait` without a process id"
    /// `( cmd & ); wait "$!"`
    WaitElsewhere "wait-elsewhere" "`wait` in another shell than the one that started the job"
    /// `cmd &`, and the script ends.
    JobNotWaited "job-not-waited" "a job that nobody waits for"
    /// `cmd || true; rc=$?`
    MaskedStatus "masked-status" "`cmd || true` before `$?` or at the end"
    /// `cmd; echo done; rc=$?`
    OverwrittenStatus "overwritten-status" "`$?` read after another command has overwritten it"
    /// `cmd || { echo failed; exit; }`
    ExitAfterMessage "exit-after-message" "`exit` without a number behind `echo`"
    /// `trap 'rm f; exit 0' EXIT`
    TrapStatus "trap-status" "an EXIT trap that ends with a status of its own"
    /// `cmd | tee f; echo; rc=${PIPESTATUS[0]}`
    StalePipestatus "stale-pipestatus" "`PIPESTATUS` read after another command has overwritten it"
    /// `${PIPESTATUS[0]}` under `#!/bin/sh`
    PipestatusInSh "pipestatus-in-sh" "`PIPESTATUS` in a script for sh"
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id())
    }
}
