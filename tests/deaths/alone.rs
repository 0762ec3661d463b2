//! Every death, for every kind of cgroup, with and without a kernel log.

use sexton_tests::OrSkip;
use sexton_tests::deaths::{Death, run_all};

use crate::assert_right;

/// A test for each death.
macro_rules! deaths {
    ($($name:ident: $death:ident;)*) => {
        $(#[test]
        fn $name() {
            let Some(outcomes) = run_all(&[Death::$death], 1).or_skip() else { return };
            assert_right(&outcomes);
        })*

        #[test]
        fn every_death_has_its_test() {
            assert_eq!([$(Death::$death),*], Death::ALL);
        }
    };
}

deaths! {
    oom_at_the_limit_of_its_own_cgroup: OwnLimit;
    oom_at_the_limit_of_a_cgroup_above: AncestorLimit;
    oom_of_a_thread_whose_leader_is_dead: ThreadAtOwnLimit;
    oom_of_a_sibling_beside_a_kill: SiblingThenKill;
    stall_where_the_oom_killer_is_disabled: StallThenKill;
    oom_of_a_member_while_the_prover_lives: MemberOom;
    oom_of_a_member_and_later_a_kill: MemberOomThenKill;
    oom_of_a_member_and_later_a_request_to_end: MemberOomThenTerm;
    kill_by_another_process: KillNine;
    our_own_escalation: OwnEscalation;
    our_own_stop: OwnStop;
    exit_137: ExitOneHundredThirtySeven;
    timeout_with_sigkill: TimeoutKill;
    sigterm_from_outside: Term;
    segfault: Segfault;
    abort_without_a_core: Abort;
    abort_with_a_core: AbortWithCore;
    illegal_instruction: IllegalInstruction;
    division_by_zero: Division;
    bus_error: BusError;
    panic_of_a_rust_program: Panic;
    panic_that_aborts: PanicAbort;
    clean_exit: CleanExit;
    error_exit: ErrorExit;
    start_failure: StartFailure;
    kill_of_a_process_whose_leader_is_dead: LeaderGoneThenKill;
    kill_of_a_traced_process: TracedThenKill;
}
