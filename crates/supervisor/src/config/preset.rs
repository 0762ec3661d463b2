//! Presets: defaults by the kind of prover, written as the file would write them.

use super::values::Preset;

/// Sexton's own prover: everything over its socket.
const BUNDLED: &str = r#"
[ready]
probe = "http"

[watchdog]
progress_timeout = "10m"

[stop]
quiesce = "http"
"#;

/// Filecoin's proving daemon. It ends at once by SIGTERM and never by SIGINT, so it is watched until it is idle; it reads
/// its parameters for minutes, is ready when its status answers, and its memory takes minutes to come back.
const CUZK: &str = r#"
[ready]
probe = "status"
url = "http://127.0.0.1:9821/status"
timeout = "30m"

[watchdog]
progress_timeout = "10m"

[stop]
quiesce = "watch"
quiesce_timeout = "30m"
exit_timeout = "5m"
release_timeout = "5m"

[memory]
reserve = "4GiB"
gate_timeout = "30m"
"#;

impl Preset {
    /// Name and values.
    pub(super) fn layer(self) -> (&'static str, &'static str) {
        match self {
            Self::Bundled => ("bundled", BUNDLED),
            Self::Cuzk => ("cuzk", CUZK),
            Self::Generic => ("generic", ""),
        }
    }
}
