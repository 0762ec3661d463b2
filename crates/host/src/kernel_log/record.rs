//! One record of `/dev/kmsg` (kernel `Documentation/ABI/testing/dev-kmsg`), as bytes. Pure.

use sexton_model::kernel::KernelRecord;

/// Why a record could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotARecord {
    /// There is no `;` after the header.
    NoHeader,
    /// The header does not start with three numbers.
    BadHeader,
}

/// Reads `PRIORITY,SEQUENCE,TIME,FLAGS[,…];TEXT\n KEY=VALUE\n…`. Header fields after the flags (`caller=T12`) are ignored:
/// the kernel says that there may be more.
///
/// # Errors
/// [`NotARecord`] for anything else.
pub fn parse(bytes: &[u8]) -> Result<KernelRecord, NotARecord> {
    let end = bytes.iter().position(|byte| *byte == b';').ok_or(NotARecord::NoHeader)?;
    let (header, rest) = bytes.split_at_checked(end).ok_or(NotARecord::NoHeader)?;
    let header = std::str::from_utf8(header).map_err(|_| NotARecord::BadHeader)?;
    let mut fields = header.split(',');
    let mut number =
        || fields.next().filter(|field| is_decimal(field)).and_then(|field| field.parse::<u64>().ok());
    let (Some(priority), Some(seq), Some(at_us)) = (number(), number(), number()) else {
        return Err(NotARecord::BadHeader);
    };
    let mut lines = rest.get(1..).unwrap_or_default().split(|byte| *byte == b'\n');
    let text = unescaped(lines.next().unwrap_or_default());
    Ok(KernelRecord {
        seq: Some(seq),
        at_us,
        priority: u32::try_from(priority).map_err(|_| NotARecord::BadHeader)?,
        text,
        tags: lines.filter_map(tag).collect(),
    })
}

fn is_decimal(field: &str) -> bool {
    !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit())
}

/// A continuation line: ` SUBSYSTEM=pci`.
fn tag(line: &[u8]) -> Option<(String, String)> {
    let line = unescaped(line.strip_prefix(b" ")?);
    let (key, value) = line.split_once('=')?;
    Some((key.to_owned(), value.to_owned()))
}

/// The kernel writes `\` and every byte outside printable ASCII as `\xNN` (`msg_add_ext_text()`). What is not UTF-8 then
/// is replaced.
fn unescaped(text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        match escaped(rest) {
            Some(byte) => {
                bytes.push(byte);
                rest = rest.get(4..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn escaped(text: &[u8]) -> Option<u8> {
    let digits = text.strip_prefix(b"\\x")?.get(..2)?;
    let digits = std::str::from_utf8(digits).ok().filter(|_| digits.iter().all(u8::is_ascii_hexdigit))?;
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_with_tags_and_fields_of_tomorrow() {
        let record =
            parse(b"30,160,424069,-,caller=T1,new=1;pci_root PNP0A03:00: host bridge\n SUBSYSTEM=acpi\n DEVICE=+acpi:PNP0A03:00\n")
                .unwrap();
        assert_eq!((record.seq, record.at_us, record.priority), (Some(160), 424_069, 30));
        assert!(!record.is_from_kernel());
        assert_eq!(record.text, "pci_root PNP0A03:00: host bridge");
        assert_eq!(record.tags[1], ("DEVICE".to_owned(), "+acpi:PNP0A03:00".to_owned()));
    }

    #[test]
    fn escapes_become_bytes_and_text_may_hold_separators() {
        let text = |bytes: &[u8]| parse(bytes).unwrap().text;
        assert_eq!(text(b"6,1,2,-;a\\x0ab;c,d=\\x5cx41"), "a\nb;c,d=\\x41");
        assert_eq!(text(b"6,1,2,c;\\xc3\\xa4 \\xff"), "ä \u{fffd}");
        assert_eq!(text(b"6,1,2,-;cut \\x0"), "cut \\x0");
        assert_eq!(text(b"6,1,2,-;no \\xzz \\x+1"), "no \\xzz \\x+1");
        assert_eq!(text(b"6,1,2,-;"), "");
    }

    #[test]
    fn other_things_are_not_records() {
        assert_eq!(parse(b""), Err(NotARecord::NoHeader));
        assert_eq!(parse(b"login: "), Err(NotARecord::NoHeader));
        for bytes in [
            b"6,1;x".as_slice(),
            b"a,b,c,-;x",
            b"6,,2,-;x",
            b"-6,1,2,-;x",
            b"+6,1,2,-;x",
            b"\xff,1,2;x",
            b"6,99999999999999999999,2,-;x",
        ] {
            assert_eq!(parse(bytes), Err(NotARecord::BadHeader), "{bytes:?}");
        }
    }

    /// moby's and cadvisor's watchers believed `<0>Out of memory: …` of any user.
    #[test]
    fn what_a_user_wrote_is_not_from_the_kernel() {
        let spoofed =
            parse(b"8,577,3838543710,-;Out of memory: Killed process 1 (init) total-vm:1kB").unwrap();
        assert!(!spoofed.is_from_kernel());
        assert!(parse(b"7,577,3838543710,-;x").unwrap().is_from_kernel());
    }
}
