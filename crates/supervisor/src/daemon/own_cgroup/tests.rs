//! Real cgroups below our own, where this machine lets us make them; the arrangements of v2 are tested in a machine of
//! their own (`tests/qemu`).

use std::fs;

use sexton_host::task::Tasks;
use sexton_model::cgroup::CgroupVersion;
use sexton_process::Spawn;
use sexton_process::cgroup::Removal;

use super::*;

struct Runs(tempfile::TempDir);

impl Runs {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn run(&self, serial: u32) -> RunDir {
        let dir = RunDir::new(self.0.path(), &format!("20260101T000000.000Z-{serial:04}"));
        fs::create_dir(dir.path()).unwrap();
        dir
    }
}

fn cgroups(settings: Settings) -> OwnCgroups {
    OwnCgroups::new(settings, &format!("test-{}-{}", std::process::id(), fastrand::u32(..)))
}

fn auto() -> Settings {
    Settings { create: Create::Auto, ..Settings::default() }
}

fn own_pids() -> [i32; 1] {
    [std::process::id() as i32]
}

/// Whether this machine lets us make cgroups; says so where it does not.
fn made(outcome: Outcome) -> Option<MadeCgroup> {
    if outcome.made.is_none() {
        println!("skipped: {:?}", outcome.notes);
    }
    outcome.made
}

#[test]
fn a_child_joins_it_and_it_goes_once_that_has_ended() {
    let (runs, mut cgroups) = (Runs::new(), cgroups(auto()));
    let dir = runs.run(1);
    let Some(made) = made(cgroups.make(&dir, &own_pids()).unwrap()) else { return };
    let spawn = Spawn {
        program: "/bin/true".into(),
        cgroup_procs: vec![procs_file(&made).into()],
        ..Spawn::default()
    };
    let held = spawn.start().unwrap();
    let lines = Tasks::system().cgroups(held.pid()).into_value().unwrap();
    assert!(lines.iter().any(|line| line.path == made.path), "{made:?} in {lines:?}");

    cgroups.ended(&dir);
    assert!(is_left_over(&dir) && PathBuf::from(&made.folder).exists(), "it is not empty");
    held.release().0.wait().unwrap();
    assert_eq!(cgroups.retry(), []);
    assert!(!is_left_over(&dir) && !PathBuf::from(&made.folder).exists());
}

#[test]
fn limits_are_set_before_anybody_is_in_it() {
    let limits = MemoryLimits { max: Some(64 << 20), high: None };
    let (runs, mut cgroups) = (Runs::new(), cgroups(Settings { limits, ..auto() }));
    let dir = runs.run(1);
    let Some(made) = made(cgroups.make(&dir, &own_pids()).unwrap()) else { return };
    let file = match made.version {
        CgroupVersion::V1 => "memory.limit_in_bytes",
        CgroupVersion::V2 => "memory.max",
    };
    let limit = fs::read_to_string(PathBuf::from(&made.folder).join(file)).unwrap();
    assert_eq!(limit.trim(), (64 << 20).to_string());
    assert!(matches!(remove(&dir), Ok(Removal::Gone)));
}

/// A supervisor that was killed at any point: what it had made is found by its note, whether it was made or not, and
/// nothing else is.
#[test]
fn left_overs_of_dead_runs_are_removed_and_the_living_runs_cgroup_is_not() {
    let (runs, mut cgroups) = (Runs::new(), cgroups(auto()));
    let (dead, living, noted_only) = (runs.run(1), runs.run(2), runs.run(3));
    let Some(of_dead) = made(cgroups.make(&dead, &own_pids()).unwrap()) else { return };
    let of_living = cgroups.make(&living, &own_pids()).unwrap().made.unwrap();
    let folder = format!("{}-never-made", of_dead.folder);
    let note = Made { cgroup: MadeCgroup { folder, ..of_dead.clone() }, others: vec![] };
    note.note(&noted_only).unwrap();
    let exists = |made: &MadeCgroup| PathBuf::from(&made.folder).exists();

    cgroups.take_over(runs.0.path(), Some(&living.run_id()));
    assert!(!exists(&of_dead) && exists(&of_living));
    assert!(!is_left_over(&noted_only) && is_left_over(&living));
    cgroups.take_over(runs.0.path(), None);
    assert!(!exists(&of_living));
}

#[test]
fn a_configured_parent_is_made_and_goes_with_the_last_run() {
    let parent = format!("/sexton-test-{}/below", std::process::id());
    let settings = Settings { parent: Some(parent.clone()), ..auto() };
    let (runs, mut cgroups) = (Runs::new(), cgroups(settings));
    let (first, second) = (runs.run(1), runs.run(2));
    let Some(of_first) = made(cgroups.make(&first, &own_pids()).unwrap()) else { return };
    let folder = PathBuf::from(&of_first.folder);
    let (below, above) = (folder.parent().unwrap(), folder.parent().unwrap().parent().unwrap());
    assert!(below.ends_with(parent.trim_start_matches('/')), "{}", folder.display());
    cgroups.make(&second, &own_pids()).unwrap().made.unwrap();
    // The first made the parents; the second still uses them.
    cgroups.ended(&first);
    assert!(!folder.exists() && below.exists());
    cgroups.ended(&second);
    assert!(!above.exists());
    // And anew.
    let third = runs.run(3);
    cgroups.make(&third, &own_pids()).unwrap().made.unwrap();
    cgroups.ended(&third);
    assert!(!above.exists());
}

#[test]
fn where_it_must_be_and_cannot_the_start_fails_and_where_it_may_it_is_said_once() {
    let impossible = |create| Settings { create, parent: Some("/a/../b".to_owned()), ..Settings::default() };
    let runs = Runs::new();
    let dir = runs.run(1);
    let mut always = cgroups(impossible(Create::Always));
    let refusal = always.make(&dir, &own_pids()).unwrap_err();
    assert_eq!(refusal.errno, sexton_process::EINVAL);
    let mut auto = cgroups(impossible(Create::Auto));
    let notes = auto.make(&dir, &own_pids()).unwrap().notes;
    assert!(notes[0].starts_with("no cgroup of its own: cgroup.parent = \"/a/../b\""), "{notes:?}");
    assert_eq!((auto.news(&notes).len(), auto.news(&notes).len(), auto.news(&[]).len()), (1, 0, 0));
    assert_eq!(auto.news(&notes).len(), 1, "said again after it was well in between");
    assert_eq!(cgroups(impossible(Create::Never)).make(&dir, &own_pids()).unwrap(), Outcome::default());
    assert!(!is_left_over(&dir));
}
