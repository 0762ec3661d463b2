//! Which shell a script is for.

use super::NotAScript;

/// What differs between shells here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Has `pipefail` and `PIPESTATUS`.
    Bash,
    /// Has `pipefail` only.
    Ksh,
    /// Has neither for certain.
    Sh,
}

/// A script's first line, read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shebang {
    pub(super) dialect: Dialect,
    /// `#!/bin/bash -o pipefail`
    pub(super) pipefail: bool,
    /// `#!/bin/sh -e`
    pub(super) errexit: bool,
}

/// Reads the first line. Without `#!` it is taken for bash, as when bash runs it.
pub(super) fn shebang(source: &str) -> Result<Shebang, NotAScript> {
    let plain = Shebang { dialect: Dialect::Bash, pipefail: false, errexit: false };
    let first = source.strip_prefix('\u{feff}').unwrap_or(source).lines().next().unwrap_or_default();
    let Some(line) = first.strip_prefix("#!") else { return Ok(plain) };
    let mut words = line.split_whitespace();
    let mut program = words.next().unwrap_or_default();
    if program.ends_with("/env") {
        program = words.find(|word| !word.starts_with('-') && !word.contains('=')).unwrap_or_default();
    }
    let name = program.rsplit('/').next().unwrap_or(program);
    let dialect = match name {
        "bash" | "rbash" => Dialect::Bash,
        "ksh" | "ksh93" | "mksh" => Dialect::Ksh,
        "sh" | "dash" | "ash" | "busybox" | "posh" => Dialect::Sh,
        _ => return Err(NotAScript::OtherLanguage(name.chars().take(40).collect())),
    };
    let options: Vec<&str> = words.collect();
    let pipefail = options.windows(2).any(|pair| pair[0].ends_with('o') && pair[1] == "pipefail");
    let errexit =
        options.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('e'));
    Ok(Shebang { dialect, pipefail, errexit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_the_shell_and_its_options() {
        let read = |line: &str| shebang(line).unwrap();
        assert_eq!(read("#!/bin/sh").dialect, Dialect::Sh);
        assert_eq!(read("#!/usr/bin/env -S bash -e").dialect, Dialect::Bash);
        assert!(read("#!/bin/bash -euo pipefail\n").pipefail);
        assert!(read("#!/bin/sh -e").errexit);
        assert!(!read("#!/bin/bash --norc").errexit);
        assert_eq!(read("make").dialect, Dialect::Bash);
    }

    #[test]
    fn other_languages_are_named() {
        assert_eq!(shebang("#!/usr/bin/env python3\n"), Err(NotAScript::OtherLanguage("python3".to_owned())));
    }
}
