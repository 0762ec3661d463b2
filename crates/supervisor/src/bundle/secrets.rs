//! What of the environment and of command lines may leave this host.
//!
//! Names are let through by a list; values are masked where their name or their look says secret. The environment is that
//! of `supervisor diag` itself: a prover's is not read, since that takes the prover's memory lock.

use std::ffi::OsString;

use serde_json::Value;

use super::part::{Answer, Part};

const PREFIXES: [&str; 3] = ["SEXTON_", "CUDA_", "NVIDIA_"];
const NAMES: [&str; 1] = ["PATH"];
const MASK: &str = "[masked]";
/// Parts of names that are mostly those of secrets.
const SECRETIVE: [&str; 12] = [
    "token",
    "secret",
    "passw",
    "passphrase",
    "credential",
    "apikey",
    "api_key",
    "private_key",
    "access_key",
    "auth",
    "cookie",
    "license",
];

/// The environment by allow-list.
pub fn environment(variables: impl Iterator<Item = (OsString, OsString)>) -> Part {
    let (mut shown, mut hidden) = (Vec::new(), 0);
    for (name, value) in variables {
        let (name, value) = (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned());
        if PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || NAMES.contains(&name.as_str()) {
            let value =
                if name_is_secretive(&name) || looks_secret(&value) { MASK.to_owned() } else { value };
            shown.push(format!("{name}={}\n", value.escape_debug()));
        } else {
            hidden += 1;
        }
    }
    shown.sort();
    let mut part = Part::default();
    part.add("environment", Answer::Found, format!("{} variables; {hidden} others left out", shown.len()));
    part.file("environment.txt", shown.concat().into_bytes());
    part
}

fn name_is_secretive(name: &str) -> bool {
    let name = name.to_lowercase().replace('-', "_");
    SECRETIVE.iter().any(|part| name.contains(part))
}

/// `scheme://user:password@host`, or a long word of mixed letters and digits without a path's slashes.
fn looks_secret(value: &str) -> bool {
    let has_password = value.split_once("://").is_some_and(|(_, rest)| {
        rest.split('/')
            .next()
            .and_then(|host| host.rsplit_once('@'))
            .is_some_and(|(user, _)| user.contains(':'))
    });
    has_password || value.split([',', ' ', ':', ';', '=']).any(is_random)
}

fn is_random(word: &str) -> bool {
    let word = word.trim_start_matches("GPU-").trim_start_matches("MIG-");
    let has = |of: fn(&char) -> bool| word.chars().any(|c| of(&c));
    word.len() >= 24
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_+".contains(c))
        && has(char::is_ascii_digit)
        && has(char::is_ascii_lowercase)
        && has(char::is_ascii_uppercase)
}

/// Masks the secrets among the words of a `command` in a record.
pub fn mask_command(record: &mut Value) -> bool {
    let Some(Value::Array(words)) = record.get_mut("command") else { return false };
    let (mut masked, mut next_is_secret) = (false, false);
    for word in words {
        let Value::String(text) = word else { continue };
        let kept = match text.split_once('=') {
            _ if std::mem::take(&mut next_is_secret) => Some(String::new()),
            Some((name, _)) if name_is_secretive(name) => Some(format!("{name}=")),
            None if text.starts_with('-') && name_is_secretive(text) => {
                next_is_secret = true;
                None
            }
            _ if looks_secret(text) => Some(String::new()),
            _ => None,
        };
        if let Some(kept) = kept {
            *text = kept + MASK;
            masked = true;
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(variables: &[(&str, &str)]) -> String {
        let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let part = environment(variables);
        String::from_utf8(part.entries[0].bytes.clone()).unwrap()
    }

    #[test]
    fn only_listed_names_come_through() {
        let text = shown(&[
            ("HOME", "/home/x"),
            ("AWS_SECRET_ACCESS_KEY", "hunter2"),
            ("PATH", "/usr/bin:/bin"),
            ("CUDA_VISIBLE_DEVICES", "GPU-8f0c2a1e-7f3b-4c55-9a0d-1b2c3d4e5f60"),
            ("SEXTON_NAME", "a"),
            ("XSEXTON_NAME", "b"),
        ]);
        assert_eq!(
            text,
            "CUDA_VISIBLE_DEVICES=GPU-8f0c2a1e-7f3b-4c55-9a0d-1b2c3d4e5f60\nPATH=/usr/bin:/bin\nSEXTON_NAME=a\n"
        );
    }

    #[test]
    fn secrets_under_listed_names_are_masked() {
        let text = shown(&[
            ("NVIDIA_API_KEY", "x"),
            ("SEXTON_UPLINK", "https://me:pw@example.org/x"),
            ("SEXTON_SEED", "xA9fQ2mZ71LkPw0RbTy83NcV"),
            ("CUDA_CACHE_PATH", "/var/cache/cuda"),
        ]);
        let masked = "NVIDIA_API_KEY=[masked]\nSEXTON_SEED=[masked]\nSEXTON_UPLINK=[masked]\n";
        assert_eq!(text, format!("CUDA_CACHE_PATH=/var/cache/cuda\n{masked}"));
    }

    #[test]
    fn a_value_with_newlines_stays_one_line() {
        assert_eq!(shown(&[("SEXTON_X", "a\nPATH=/evil\u{1b}[0m")]), "SEXTON_X=a\\nPATH=/evil\\u{1b}[0m\n");
    }

    #[test]
    fn secrets_on_a_command_line_are_masked_and_files_of_keys_are_not() {
        let words = ["p", "--token", "abc", "--auth=xyz", "--key", "/keys/a.zkey", "TOKEN=1", "--size", "7"];
        let mut record = json!({"command": words});
        assert!(mask_command(&mut record));
        let masked = [
            "p",
            "--token",
            "[masked]",
            "--auth=[masked]",
            "--key",
            "/keys/a.zkey",
            "TOKEN=[masked]",
            "--size",
            "7",
        ];
        assert_eq!(record["command"], json!(masked));
        assert!(!mask_command(&mut json!({"command": ["prover", "serve"]})));
    }
}
