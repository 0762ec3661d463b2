//! Drains of pinned memory as an H200 recorded them: `../shared/data/drain-h200.csv`.

use std::collections::BTreeMap;
use std::path::Path;

use sexton_diagnosis::drain::{Figures, Sample, Settings, Start, Tracker};
use sexton_model::drain::{DrainPhase, DrainReport, PastDrain};
use sexton_model::process_state::{ProcessState, ThreadFate, WaitPlace};
use sexton_model::reading::Reading;

use crate::stage::{at, denied, exiting, running, seconds, thread};

/// One line.
struct Row {
    elapsed: f64,
    phase: String,
    available: u64,
    resident: Option<u64>,
    leader: char,
    tasks: i32,
    charge: u64,
}

struct Recording {
    name: String,
    rows: Vec<Row>,
}

fn recordings() -> Option<Vec<Recording>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/drain-h200.csv");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("skipped: the recording ../shared/data/drain-h200.csv is not there");
        return None;
    };
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next()?.split(',').collect();
    let mut found: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for line in lines {
        let fields: BTreeMap<&str, &str> = header.iter().copied().zip(line.split(',')).collect();
        let number = |key: &str| fields[key].parse::<u64>().ok();
        found.entry(fields["test"].to_owned()).or_default().push(Row {
            elapsed: fields["t_s"].parse().unwrap(),
            phase: fields["phase"].to_owned(),
            available: number("MemAvailable_kB").unwrap() << 10,
            resident: number("leader_VmRSS_kB").map(|kib| kib << 10),
            leader: fields["leader_state"].chars().next().unwrap_or(' '),
            tasks: fields["tasks"].parse().unwrap(),
            charge: number("cg_current").unwrap(),
        });
    }
    Some(found.into_iter().map(|(name, rows)| Recording { name, rows }).collect())
}

/// Which of the figures a replay may see.
#[derive(Clone, Copy, PartialEq)]
enum Sight {
    All,
    HostOnly,
}

impl Recording {
    fn start(&self, sight: Sight, scale: f64) -> Start {
        let (first, last) = (&self.rows[0], self.rows.last().unwrap());
        Start {
            baseline: self.figures(0, last.available, sight, scale),
            exclusive: Reading::Value(sight == Sight::All),
            alive: self.figures(first.charge, first.available, sight, scale),
            resident_bytes: first.resident.map(|bytes| (bytes as f64 * scale) as u64),
        }
    }

    fn figures(&self, charge: u64, available: u64, sight: Sight, scale: f64) -> Figures {
        let scaled = |bytes: u64| (bytes as f64 * scale) as u64;
        Figures {
            charge_bytes: if sight == Sight::All { Reading::Value(scaled(charge)) } else { denied() },
            shmem_bytes: Reading::Absent,
            available_bytes: Reading::Value(scaled(available)),
        }
    }

    /// Replays it with bytes and times `scale` times as large.
    fn replay(&self, sight: Sight, scale: f64, history: Vec<PastDrain>) -> (Tracker, Vec<DrainReport>) {
        let start = self.start(sight, scale);
        let mut tracker = Tracker::new(7, Settings::default(), start, history, at(0.0));
        tracker.asked_to_exit();
        let reports = self.rows.iter().map(|row| {
            let elapsed = row.elapsed * scale;
            tracker.feed(&Sample {
                at: at(elapsed),
                elapsed: seconds(elapsed),
                process: row.process(),
                threads_alive: Reading::Value(row.alive()),
                cpu_seconds: None,
                memory: self.figures(row.charge, row.available, sight, scale),
                work_done: None,
            })
        });
        let reports = reports.collect();
        (tracker, reports)
    }
}

impl Row {
    fn alive(&self) -> u64 {
        (self.tasks - i32::from(self.leader == 'Z')) as u64
    }

    fn process(&self) -> ProcessState {
        match self.phase.as_str() {
            "before" => running(),
            "reaped" => ProcessState::Gone,
            _ => exiting(
                (0..self.alive() as i32)
                    .map(|tid| thread(tid, ThreadFate::Leaving, WaitPlace::Nowhere, &[]))
                    .collect(),
            ),
        }
    }
}

#[test]
fn every_recorded_drain_goes_through_its_phases_and_none_stalls() {
    for recording in recordings().unwrap_or_default() {
        for sight in [Sight::All, Sight::HostOnly] {
            let (tracker, reports) = recording.replay(sight, 1.0, Vec::new());
            let name = &recording.name;
            assert!(reports.iter().all(|report| !report.stalled), "{name}");
            for (row, report) in recording.rows.iter().zip(&reports) {
                let expected =
                    if row.phase == "reaped" { DrainPhase::Releasing } else { DrainPhase::Exiting };
                let in_order = report.phase == expected || report.phase == DrainPhase::Released;
                assert!(in_order, "{name} at {}: {:?}", row.elapsed, report.phase);
                assert!(
                    row.phase == "reaped" || report.phase == DrainPhase::Exiting,
                    "{name}: released alive"
                );
            }
            let last = reports.last().unwrap();
            assert_eq!(last.phase, DrainPhase::Released, "{name}: {}", last.summary);
            assert!(tracker.past(at(9.0)).is_some() || recording.rows[0].charge < 64 << 20, "{name}");
        }
    }
}

/// 64 GiB stand still for 4.3 s; 400 GiB would for 27 s. Whoever took that for a stall would start into a full host.
#[test]
fn the_silences_of_400_gib_are_no_stall() {
    for recording in recordings().unwrap_or_default().into_iter().filter(|one| one.name.contains("64")) {
        for sight in [Sight::All, Sight::HostOnly] {
            let scale = 400.0 / 64.0;
            let (_, reports) = recording.replay(sight, scale, Vec::new());
            let longest = reports.iter().map(|report| report.seconds_without_progress).fold(0.0, f64::max);
            assert!(reports.iter().all(|report| !report.stalled), "{}: {longest} s", recording.name);
            if sight == Sight::HostOnly && recording.name.starts_with("alloc64") {
                assert!(longest > 5.0, "{}: the recording has no silence: {longest} s", recording.name);
            }
        }
    }
}

#[test]
fn one_drain_foretells_the_next() {
    let recordings = recordings().unwrap_or_default();
    let named = |name: &str| recordings.iter().find(|recording| recording.name == name);
    let (Some(first), Some(second)) = (named("alloc64 KILL"), named("alloc64c KILL")) else { return };
    let (tracker, _) = first.replay(Sight::All, 1.0, Vec::new());
    let history = vec![tracker.past(at(8.0)).unwrap()];
    let (_, reports) = second.replay(Sight::All, 1.0, history);
    let reaped = second.rows.iter().find(|row| row.phase == "reaped").unwrap().elapsed;
    let told = |report: &DrainReport| report.eta_seconds.map(|eta| report.elapsed_seconds + eta);
    for report in reports.iter().filter(|report| (0.1..4.0).contains(&report.elapsed_seconds)) {
        let end = told(report).unwrap_or_else(|| panic!("{}", report.eta_reason));
        assert!((end - reaped).abs() < 1.0, "told {end} at {}, was {reaped}", report.elapsed_seconds);
    }
    // And once most of it flows, its own rate does.
    for report in reports.iter().filter(|report| (5.5..7.4).contains(&report.elapsed_seconds)) {
        let end = told(report).unwrap_or_else(|| panic!("{}", report.eta_reason));
        assert!((end - reaped).abs() < 1.0, "told {end} at {}, was {reaped}", report.elapsed_seconds);
    }
}
