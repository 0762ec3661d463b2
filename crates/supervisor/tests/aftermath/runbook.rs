//! `supervisor why` names a page, and has it.

use crate::stage::{Said, Stage};

#[test]
fn why_names_the_page_of_its_cause_and_prints_it() {
    let stage = Stage::new();
    stage.let_die("exit 7");
    let why = stage.run(&["why"]).stdout();
    assert!(why.contains("runbooks/error_exit.md (supervisor why 2"), "{why}");
    let page = stage.run(&["why", "--runbook"]).stdout();
    assert_eq!(page, include_str!("../../../../runbooks/error_exit.md"));
    assert_eq!(stage.run(&["why", "--runbook", "--pid", "1"]).code(), 2);
}
