//! From the bytes of a proc(5) file to values. Pure; names of processes and cgroups may hold any byte.

use procfs::process::{Stat, Status};
use procfs::{FromBufRead, FromRead, ProcessCGroups};
use sexton_model::run::CgroupPath;

/// `stat`. The parser of `procfs` relies on the shape `PID (COMM) LETTER …` and would panic without it, so that is
/// checked first. COMM may itself hold parentheses, spaces and newlines: it ends at the *last* `)`.
pub(super) fn stat(bytes: &[u8]) -> Result<Stat, String> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.trim();
    let well_formed = line.split_once(" (").is_some_and(|(pid, rest)| {
        !pid.contains('(')
            && rest.rsplit_once(')').is_some_and(|(_, fields)| fields.len() > 1 && fields.starts_with(' '))
    });
    if !well_formed {
        return Err(format!("no \"PID (NAME) STATE\" in {line:?}"));
    }
    Stat::from_read(line.as_bytes()).map_err(|error| error.to_string())
}

/// `status`. The kernel escapes newlines in the name, but passes other bytes on.
pub(super) fn status(bytes: &[u8]) -> Result<Status, String> {
    let text = String::from_utf8_lossy(bytes);
    Status::from_buf_read(text.as_bytes()).map_err(|error| error.to_string())
}

/// `cgroup`: one line a hierarchy, `NUMBER:CONTROLLERS:PATH`, the path holding any byte but a newline.
pub(crate) fn cgroups(bytes: &[u8]) -> Result<Vec<CgroupPath>, String> {
    let text = String::from_utf8_lossy(bytes);
    let lines = ProcessCGroups::from_buf_read(text.as_bytes()).map_err(|error| error.to_string())?;
    Ok(lines
        .into_iter()
        .map(|line| CgroupPath {
            hierarchy: line.hierarchy,
            controllers: line.controllers.join(","),
            path: line.pathname,
        })
        .collect())
}

/// `stack`: lines of `[<0>] function+0x1a/0x30 [module]`, innermost first, here without the address.
pub(super) fn kernel_stack(bytes: &[u8]) -> Result<Vec<String>, String> {
    let text = String::from_utf8_lossy(bytes);
    Ok(text
        .lines()
        .map(|line| line.split_once("] ").map_or(line, |(_, frame)| frame).trim().to_owned())
        .filter(|frame| !frame.is_empty())
        .collect())
}

/// `task/TID/children`: pids between spaces.
pub(super) fn children(bytes: &[u8]) -> Result<Vec<i32>, String> {
    let text = String::from_utf8_lossy(bytes);
    text.split_whitespace().map(|pid| pid.parse().map_err(|_| format!("{pid:?} is not a pid"))).collect()
}

/// `/proc/uptime`: seconds since boot, then idle time.
pub(super) fn uptime(text: &str) -> Result<f64, String> {
    text.split_whitespace()
        .next()
        .and_then(|seconds| seconds.parse().ok())
        .filter(|seconds: &f64| seconds.is_finite())
        .ok_or_else(|| format!("{text:?} does not begin with a number of seconds"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIELDS: &str = "S 1 7 7 0 -1 4194560 109 0 0 0 3 2 0 0 20 0 1 0 60114 2662400 351 18446744073709551615 1 1 0 0 0 0 0 16781312 134234626 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 9";

    #[test]
    fn names_may_hold_anything() {
        for name in ["a b", "a) R 1 (b", "", ")", "((", "line\nbreak", "a:b"] {
            let stat = stat(format!("7 ({name}) {FIELDS}\n").as_bytes()).unwrap();
            assert_eq!((stat.comm.as_str(), stat.state, stat.ppid), (name, 'S', 1), "{name:?}");
        }
        let stat = stat(&[b"7 (\xff\xfe) ", FIELDS.as_bytes()].concat()).unwrap();
        assert_eq!(stat.comm, "\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_short_stat_is_refused() {
        for short in
            ["", "7", "7 (", "7 (a", "7 (a)", "7 (a) ", "7 (a) \u{a0}", "(a) S", ") (", "7 )(", "7 (a)é S"]
        {
            assert!(stat(short.as_bytes()).is_err(), "{short:?}");
        }
    }

    #[test]
    fn stack_frames_lose_their_address_and_keep_their_module() {
        let text = b"[<0>] uvm_va_space_destroy+0x1a2/0x6c0 [nvidia_uvm]\n[<ffffffff81>] do_exit+0x1/0x2\n";
        let frames = ["uvm_va_space_destroy+0x1a2/0x6c0 [nvidia_uvm]", "do_exit+0x1/0x2"];
        assert_eq!(kernel_stack(text).unwrap(), frames);
    }

    #[test]
    fn cgroup_paths_may_hold_colons() {
        let lines = cgroups(b"4:memory:/a:b\n5:cpu,cpuacct:/\n1:name=systemd:/x\n0::/unified\xff\n").unwrap();
        let paths: Vec<_> =
            lines.iter().map(|line| (line.controllers.as_str(), line.path.as_str())).collect();
        let expected =
            [("memory", "/a:b"), ("cpu,cpuacct", "/"), ("name=systemd", "/x"), ("", "/unified\u{fffd}")];
        assert_eq!(paths, expected);
    }

    proptest! {
        #[test]
        fn no_parser_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let text = String::from_utf8_lossy(&bytes);
            let _ = (stat(&bytes), status(&bytes), cgroups(&bytes), kernel_stack(&bytes));
            let _ = (children(&bytes), uptime(&text));
        }

        #[test]
        fn no_damaged_stat_panics(text in "[0-9]{0,2} ?[(]?[a(): ]{0,4}[)]?[ RS0-9é\u{a0}-]{0,40}") {
            let _ = stat(text.as_bytes());
        }
    }
}
