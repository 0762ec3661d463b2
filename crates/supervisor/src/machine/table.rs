//! The table itself: for every state and input, the move.

use sexton_model::status::State;

use super::Input;

/// What an input does in a state. [`super::Machine`] says how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Move {
    /// Nothing: late or repeated news, or a command for what is already so.
    Nothing,
    /// The program runs: ready, unless it says itself when it is.
    Run,
    /// Ready.
    Ready,
    /// Ask the prover to finish its work and take no more. The goal is the command's.
    Quiesce,
    /// Take that back: ready.
    Unquiesce,
    /// Nothing is in flight any more: SIGTERM, where the goal is a stop.
    Idle,
    /// It did not get idle in time: SIGTERM, but a drain is given up.
    Impatience,
    /// SIGTERM. The goal is the command's.
    Terminate,
    /// A new goal for a stop under way. Nothing takes back a shutdown.
    Aim,
    /// The leader is dead, other threads are not.
    Exit,
    /// More time.
    Extend,
    /// SIGKILL, once.
    Kill,
    /// The run is over and recorded. What follows, the goal says, or policy where nobody asked for it.
    End,
    /// The drain makes no progress, or does so again.
    Mark,
    /// The memory is back, or is waited for no longer: go on with what follows.
    GoOn,
    /// Have it up, as soon as its memory is there.
    Gate,
    /// The back-off is over: as [`Move::Gate`].
    Retry,
    /// Start, smaller if need be, or not at all.
    Fit,
    /// Make a run.
    Launch,
    /// Down until somebody says `start`.
    Fail,
    /// Down by command.
    Down,
    /// End the supervisor.
    Leave,
}

/// The states that have a row; [`State::Stalled`] is a mark on the three that a drain passes.
pub const STATES: [State; 10] = [
    State::Starting,
    State::Ready,
    State::Quiescing,
    State::Stopping,
    State::Exiting,
    State::Releasing,
    State::BackingOff,
    State::WaitingForMemory,
    State::Stopped,
    State::Failed,
];

#[rustfmt::skip]
mod rows {
    use super::Move::{self, *};

    const ____: Move = Nothing;
    const RUN_: Move = Run;
    const REDY: Move = Ready;
    const QUIE: Move = Quiesce;
    const BACK: Move = Unquiesce;
    const IDLE: Move = Idle;
    const IMPA: Move = Impatience;
    const TERM: Move = Terminate;
    const AIM_: Move = Aim;
    const EXIT: Move = Exit;
    const MORE: Move = Extend;
    const KILL: Move = Kill;
    const END_: Move = End;
    const MARK: Move = Mark;
    const GOON: Move = GoOn;
    const GATE: Move = Gate;
    const RTRY: Move = Retry;
    const FIT_: Move = Fit;
    const GO__: Move = Launch;
    const FAIL: Move = Fail;
    const DOWN: Move = Down;
    const BYE_: Move = Leave;

    /// Rows as [`super::STATES`], columns as [`super::column`].
    pub(super) const TABLE: [[Move; 22]; 10] = [
        // the prover                       | drain and memory       | time             | commands
        // Start Ready  Leadr Ended Idle  Core   Relea Drain Open  Shut   Due   Exten Unhea  Quies Unqui Stop  Drain Start Now   Restt Shutd Hasten
        [RUN_, REDY, EXIT, END_, ____, ____,  ____, MARK, ____, ____,  ____, ____, TERM,  ____, ____, TERM, TERM, ____, ____, TERM, TERM, TERM], // starting
        [____, ____, EXIT, END_, ____, ____,  ____, MARK, ____, ____,  ____, ____, TERM,  QUIE, ____, QUIE, QUIE, ____, ____, QUIE, QUIE, TERM], // ready
        [____, ____, EXIT, END_, IDLE, ____,  ____, MARK, ____, ____,  IMPA, MORE, ____,  ____, BACK, QUIE, QUIE, BACK, BACK, QUIE, QUIE, TERM], // quiescing
        [____, ____, EXIT, END_, ____, MORE,  ____, MARK, ____, ____,  KILL, MORE, ____,  ____, ____, AIM_, AIM_, AIM_, AIM_, AIM_, AIM_, KILL], // stopping
        [____, ____, ____, END_, ____, MORE,  ____, MARK, ____, ____,  KILL, MORE, ____,  ____, ____, TERM, TERM, AIM_, AIM_, TERM, TERM, KILL], // exiting
        [____, ____, ____, ____, ____, ____,  GOON, MARK, ____, ____,  GOON, ____, ____,  ____, ____, AIM_, AIM_, AIM_, GO__, AIM_, AIM_, BYE_], // releasing
        [____, ____, ____, ____, ____, ____,  ____, ____, ____, ____,  RTRY, ____, ____,  ____, ____, DOWN, DOWN, GATE, GO__, GATE, BYE_, BYE_], // backing_off
        [____, ____, ____, ____, ____, ____,  ____, ____, GO__, FAIL,  FIT_, ____, ____,  ____, ____, DOWN, DOWN, ____, GO__, ____, BYE_, BYE_], // waiting_for_memory
        [____, ____, ____, ____, ____, ____,  ____, ____, ____, ____,  ____, ____, ____,  ____, ____, ____, ____, GATE, GO__, GATE, BYE_, BYE_], // stopped
        [____, ____, ____, ____, ____, ____,  ____, ____, ____, ____,  ____, ____, ____,  ____, ____, DOWN, DOWN, GATE, GO__, GATE, BYE_, BYE_], // failed
    ];
}

fn row(state: State) -> Option<usize> {
    STATES.iter().position(|one| *one == state)
}

fn column(input: Input) -> usize {
    match input {
        Input::Started => 0,
        Input::Ready => 1,
        Input::LeaderDied => 2,
        Input::Ended(_) => 3,
        Input::Idle => 4,
        Input::DumpingCore => 5,
        Input::Released => 6,
        Input::DrainStalled(_) => 7,
        Input::GateOpen => 8,
        Input::GateShut => 9,
        Input::Due => 10,
        Input::Extend(_) => 11,
        Input::Unhealthy => 12,
        Input::Quiesce => 13,
        Input::Unquiesce => 14,
        Input::Stop => 15,
        Input::Drain => 16,
        Input::Start => 17,
        Input::StartNow => 18,
        Input::Restart => 19,
        Input::Shutdown => 20,
        Input::Hasten => 21,
    }
}

/// The move for an input in a state.
pub fn look_up(state: State, input: Input) -> Move {
    let cells = row(state).and_then(|row| rows::TABLE.get(row));
    cells.and_then(|cells| cells.get(column(input))).copied().unwrap_or(Move::Nothing)
}
