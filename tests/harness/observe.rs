//! Processes as Sexton sees them.

use sexton_diagnosis::process_state::classify;
use sexton_host::task::Tasks;
use sexton_model::process_state::ProcessState;
use sexton_model::task::ProcessReading;

/// State of process `pid` at this moment.
pub fn observe(pid: i32) -> ProcessState {
    classify(&Tasks::system().process(pid))
}

/// Reading of process `pid`. Panics when there is none.
#[track_caller]
pub fn read_process(pid: i32) -> ProcessReading {
    Tasks::system().process(pid).into_value().expect("the process can be read")
}
