//! How a prover is told its memory budget: by `SEXTON_MEMORY_BUDGET_BYTES`, in its arguments, in a file that is written for it.
//!
//! ```text
//! {budget_bytes}   429496729600
//! {budget_gib}     400            whole GiB, rounded down: cuzk reads no other sizes
//! ```

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::config::values::Template;

/// Stands for the budget in bytes.
pub const BYTES: &str = "{budget_bytes}";
/// Stands for the budget in whole GiB.
pub const GIB: &str = "{budget_gib}";

/// Templates are small; something else was meant.
const TEMPLATE_MAX: u64 = 1 << 20;

/// A configuration that could not be written for the prover.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// Of the template.
    #[error("[memory] template: cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It would hand on the same whatever the budget.
    #[error("[memory] template: {} has neither {BYTES} nor {GIB} in it: put one where the budget belongs", .0.display())]
    NothingToFillIn(PathBuf),
    /// 0 means something else to most programs.
    #[error("[memory] template: the budget of {budget} bytes is less than 1 GiB, and {} asks for whole GiB", path.display())]
    LessThanGib {
        /// The template.
        path: PathBuf,
        /// The budget.
        budget: u64,
    },
    /// Of the file that is made from it.
    #[error("[memory] template: cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why. The old file is untouched.
        source: io::Error,
    },
}

/// A command with the budget filled in; as it is where there is none.
pub fn filled_in(command: &[OsString], budget: Option<u64>) -> Vec<OsString> {
    let Some(budget) = budget else { return command.to_vec() };
    command.iter().map(|word| OsString::from_vec(fill_in(word.as_bytes(), budget))).collect()
}

/// Whether a word asks for the budget.
pub fn asks_for(word: &OsStr, what: &str) -> bool {
    word.as_bytes().windows(what.len()).any(|window| window == what.as_bytes())
}

fn fill_in(text: &[u8], budget: u64) -> Vec<u8> {
    let gib = budget >> 30;
    let filled = replace(text, BYTES.as_bytes(), budget.to_string().as_bytes());
    replace(&filled, GIB.as_bytes(), gib.to_string().as_bytes())
}

fn replace(text: &[u8], what: &[u8], with: &[u8]) -> Vec<u8> {
    let mut filled = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.windows(what.len()).position(|window| window == what) {
        filled.extend_from_slice(&rest[..at]);
        filled.extend_from_slice(with);
        rest = &rest[at + what.len()..];
    }
    filled.extend_from_slice(rest);
    filled
}

/// Writes the target of a template for a budget in bytes: whole or not at all, with the mode of the file that it replaces,
/// else of the template.
///
/// # Errors
/// [`TemplateError`]; the old target is untouched then.
pub fn render(template: &Template, budget: u64) -> Result<(), TemplateError> {
    let (source, target) = (&template.source, &template.target);
    let unreadable = |error| TemplateError::Read { path: source.clone(), source: error };
    let meta = fs::metadata(source).map_err(unreadable)?;
    if meta.len() > TEMPLATE_MAX {
        return Err(unreadable(io::Error::other("it has more than 1 MiB")));
    }
    let text = fs::read(source).map_err(unreadable)?;
    let asks = |what| asks_for(OsStr::from_bytes(&text), what);
    if !asks(BYTES) && !asks(GIB) {
        return Err(TemplateError::NothingToFillIn(source.clone()));
    }
    if asks(GIB) && budget >> 30 == 0 {
        return Err(TemplateError::LessThanGib { path: source.clone(), budget });
    }
    let mode = fs::metadata(target).map_or(meta.permissions().mode(), |old| old.permissions().mode()) & 0o777;
    replace_file(target, &fill_in(&text, budget), mode)
        .map_err(|error| TemplateError::Write { path: target.clone(), source: error })
}

fn replace_file(target: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    // Through a link the file that it names is replaced, and the link stays.
    let target = &fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".sexton.tmp");
    let temporary = folder.join(name);
    let written = (|| {
        let mut file = File::options().write(true).create(true).truncate(true).mode(mode).open(&temporary)?;
        // Our own creation mask is stricter than what was asked for.
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, target)
    })();
    if written.is_err() {
        // That it cannot be removed either adds nothing to the first error.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(folder: &Path, text: &str) -> Template {
        let template = Template { source: folder.join("in"), target: folder.join("out.toml") };
        fs::write(&template.source, text).unwrap();
        template
    }

    #[test]
    fn arguments_are_filled_in_and_stay_what_they_are_without_a_budget() {
        let command: Vec<OsString> =
            ["p", "--mem={budget_gib}GiB/{budget_bytes}", "{budget}"].map(Into::into).to_vec();
        assert_eq!(filled_in(&command, None), command);
        assert_eq!(filled_in(&command, Some((3 << 30) - 1)), ["p", "--mem=2GiB/3221225471", "{budget}"]);
        let bytes = [OsString::from_vec(b"\xff{budget_bytes}\xfe".to_vec())];
        assert_eq!(filled_in(&bytes, Some(7)), [OsString::from_vec(b"\xff7\xfe".to_vec())]);
    }

    #[test]
    fn a_template_is_written_whole_and_keeps_the_mode_of_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let template = template(folder.path(), "total_budget = \"{budget_gib}GiB\"\n");
        render(&template, 400 << 30).unwrap();
        assert_eq!(fs::read_to_string(&template.target).unwrap(), "total_budget = \"400GiB\"\n");
        fs::set_permissions(&template.target, fs::Permissions::from_mode(0o604)).unwrap();
        render(&template, 340 << 30).unwrap();
        assert_eq!(fs::read_to_string(&template.target).unwrap(), "total_budget = \"340GiB\"\n");
        assert_eq!(fs::metadata(&template.target).unwrap().permissions().mode() & 0o777, 0o604);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
    }

    #[test]
    fn a_template_that_would_hand_on_nothing_or_zero_changes_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let without = template(folder.path(), "total_budget = \"400GiB\"\n");
        fs::write(&without.target, "old").unwrap();
        let error = render(&without, 1 << 40).unwrap_err();
        assert!(error.to_string().contains("neither {budget_bytes} nor {budget_gib}"), "{error}");
        let with = template(folder.path(), "{budget_gib}");
        assert!(matches!(render(&with, (1 << 30) - 1), Err(TemplateError::LessThanGib { .. })));
        fs::remove_file(&with.source).unwrap();
        assert!(render(&with, 1 << 40).unwrap_err().to_string().contains("cannot read"));
        assert_eq!(fs::read_to_string(&with.target).unwrap(), "old");
        let nowhere =
            Template { target: folder.path().join("no/such/folder"), ..template(folder.path(), BYTES) };
        assert!(render(&nowhere, 1).unwrap_err().to_string().contains("cannot write"));
    }
}
