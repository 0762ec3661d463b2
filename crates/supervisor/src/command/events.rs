//! `supervisor events`

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value;
use sexton_model::event::{Event, EventKind};
use sexton_process::Readable;
use sexton_process::watch::Watch;

use super::{Failure, show};
use crate::place::Place;
use crate::rotated::Follower;
use crate::rotated::Place::Beginning;
use crate::terminal::calm_line;

/// Show what happened: starts, endings, signals, changes of state
///
/// Reads the journal itself, whether a supervisor runs or not. With --json one event a line, as it was written.
#[derive(Debug, clap::Args)]
pub(super) struct EventsArgs {
    /// Go on with what comes, until interrupted
    #[arg(long, short)]
    follow: bool,
    /// Events of this run only: its id, or the beginning of it
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Events of this kind only, as `--json` names it; may be given several times
    #[arg(long = "kind", value_name = "KIND", value_parser = kind)]
    kinds: Vec<EventKind>,
}

fn kind(name: &str) -> Result<EventKind, String> {
    match serde_json::from_value(Value::from(name)) {
        // What this version does not know reads as `other`.
        Ok(EventKind::Other) if name != "other" => {
            Err("no such kind; `supervisor events` shows them".to_owned())
        }
        Ok(kind) => Ok(kind),
        Err(error) => Err(error.to_string()),
    }
}

impl EventsArgs {
    fn wants(&self, event: &Event) -> bool {
        let of_run =
            |wanted: &String| event.run_id.as_ref().is_some_and(|id| id.starts_with(wanted.as_str()));
        self.run.as_ref().is_none_or(of_run) && (self.kinds.is_empty() || self.kinds.contains(&event.kind))
    }
}

pub(super) async fn events(place: &Place, args: &EventsArgs, json: bool) -> Result<(), Failure> {
    let path = place.journal();
    let unreadable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::Failed(format!(
            "nothing is recorded of \"{}\": there is no {}",
            place.name,
            path.display()
        )),
        _ => Failure::NotReadable(format!("cannot read {}: {error}", path.display())),
    };
    // Before the first reading, so that nothing falls between the two.
    let news = if args.follow { Some(News::of(&path).map_err(unreadable)?) } else { None };
    let mut lines = Lines::of(Follower::open(&path, Beginning).map_err(unreadable)?);
    loop {
        while let Some(line) = lines.next_whole().map_err(unreadable)? {
            print(&line, args, json)?;
        }
        match &news {
            Some(news) => news.wait().await.map_err(unreadable)?,
            None => return Ok(()),
        }
    }
}

fn print(line: &[u8], args: &EventsArgs, json: bool) -> Result<(), Failure> {
    // What is no event is passed over: a supervisor that was killed while it wrote leaves such a line.
    let Ok(event) = serde_json::from_slice::<Event>(line) else { return Ok(()) };
    if !args.wants(&event) {
        return Ok(());
    }
    // As written: a kind of a newer version keeps its name.
    let raw = String::from_utf8_lossy(line);
    let printed = if json { show::json_line(&raw) } else { show::text(&sentence(&event, &raw)) };
    Ok(printed?)
}

/// `TIME KIND RUN DETAILS`.
fn sentence(event: &Event, raw: &str) -> String {
    let kind = serde_json::from_str::<Value>(raw).ok();
    let kind = kind.as_ref().and_then(|event| event.get("kind")?.as_str()).unwrap_or("other");
    let details = event.details.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    });
    let details = details.collect::<Vec<_>>().join(" ");
    let run = event.run_id.as_deref().unwrap_or("-");
    let line = format!("{} {kind:<23} {run:<25} {details}", show::time(event.at)).replace('\n', " ");
    calm_line(&line) + "\n"
}

/// Tells when the journal has grown, or another file has taken its place.
struct News {
    watch: Watch,
    readable: Readable,
}

impl News {
    fn of(path: &Path) -> std::io::Result<Self> {
        let watch = Watch::writes(path.parent().unwrap_or(path))?;
        Ok(Self { readable: Readable::new(&watch)?, watch })
    }

    async fn wait(&self) -> std::io::Result<()> {
        let mut ready = self.readable.wait().await?;
        // Cleared before the journal is read: what is written from here on shows again.
        ready.clear_ready();
        self.watch.clear()
    }
}

/// Whole lines of a file that grows.
struct Lines<R> {
    source: R,
    /// The beginning of a line whose end is not written yet.
    rest: Vec<u8>,
}

impl<R: Read> Lines<BufReader<R>> {
    fn of(source: R) -> Self {
        Self { source: BufReader::new(source), rest: Vec::new() }
    }
}

impl<R: BufRead> Lines<R> {
    /// The next line without its newline; `None` where there is no whole one.
    fn next_whole(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        self.source.read_until(b'\n', &mut self.rest)?;
        if self.rest.last() != Some(&b'\n') {
            return Ok(None);
        }
        let mut line = std::mem::take(&mut self.rest);
        line.pop();
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;

    #[test]
    fn a_line_that_is_being_written_comes_once_it_is_whole() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut lines = Lines::of(File::open(file.path()).unwrap());
        assert_eq!(lines.next_whole().unwrap(), None);
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(lines.next_whole().unwrap(), Some(b"one".to_vec()));
        assert_eq!(lines.next_whole().unwrap(), None);
        file.write_all(b"o\n").unwrap();
        assert_eq!(lines.next_whole().unwrap(), Some(b"two".to_vec()));
    }

    #[test]
    fn a_kind_is_named_as_in_json() {
        assert_eq!(kind("run_ended"), Ok(EventKind::RunEnded));
        assert!(kind("run-ended").is_err() && kind("").is_err());
    }

    #[test]
    fn an_event_of_a_newer_version_keeps_its_name_and_control_characters_are_calmed() {
        let raw = r#"{"schema_version":1,"seq":0,"at":"2026-01-01T00:00:00Z","kind":"eclipse","run_id":null,"x":"a\u001b[2J\nb"}"#;
        let event = serde_json::from_str(raw).unwrap();
        let line = sentence(&event, raw);
        assert!(line.starts_with("2026-01-01 00:00:00Z eclipse "), "{line}");
        assert!(line.ends_with("x=a\u{fffd}[2J b\n"), "{line:?}");
    }
}
