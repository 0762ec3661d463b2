//! Lines of the NVIDIA driver.

use sexton_model::kernel::fact::{GpuIdentity, GpuLost, KernelFact, Xid};

use super::scan::{number, whole};

pub(super) fn fact(text: &str) -> Option<KernelFact> {
    let line = text.strip_prefix("NVRM: ")?;
    xid(line).or_else(|| identity(line)).or_else(|| lost(line))
}

/// `Xid (PCI:0000:01:00): 31, pid=7194, name=prover, Ch 00000008, …`; with MIG `Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00)`;
/// of old drivers without `PCI:`.
fn xid(line: &str) -> Option<KernelFact> {
    let (place, rest) = line.strip_prefix("Xid (")?.split_once("): ")?;
    let mut place = place.split(' ');
    let pci = pci_address(place.next()?)?;
    let (mut gpu_instance, mut compute_instance) = (None, None);
    for part in place {
        gpu_instance = gpu_instance.or_else(|| part.strip_prefix("GPU-I:").and_then(whole));
        compute_instance = compute_instance.or_else(|| part.strip_prefix("GPU-CI:").and_then(whole));
    }
    let (code, rest) = number(rest)?;
    // Cut off behind a digit, it could be another code.
    let text = rest.strip_prefix(',')?.trim_start();
    let (pid, rest) = field(text, "pid=").map_or((None, text), |(pid, rest)| (whole(pid), rest));
    let name = field(rest, "name=").map(|(name, _)| name).filter(|name| *name != "<unknown>");
    Some(KernelFact::Xid(Xid {
        pci,
        gpu_instance,
        compute_instance,
        code,
        pid,
        name: name.map(str::to_owned),
        text: text.to_owned(),
    }))
}

/// The value of `key` at the front, which ends at `, `, and what follows. Unknown ones are written `<unknown>`, with or
/// without quotation marks. Without an end it may be cut off.
fn field<'a>(text: &'a str, key: &str) -> Option<(&'a str, &'a str)> {
    let (value, rest) = text.strip_prefix(key)?.split_once(", ")?;
    Some((value.trim_matches('\''), rest))
}

/// `GPU at PCI:0000:01:00: GPU-2f3a…`
fn identity(line: &str) -> Option<KernelFact> {
    let (place, uuid) = line.strip_prefix("GPU at ")?.split_once(": ")?;
    let is_uuid = uuid.starts_with("GPU-")
        && uuid.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    let pci = pci_address(place)?;
    is_uuid.then(|| KernelFact::GpuIdentity(GpuIdentity { pci, uuid: uuid.to_owned() }))
}

/// Three lines in one record or in three: `The NVIDIA GPU 0000:01:00.0`, `(PCI ID: 10de:2684) installed in this system
/// has`, `fallen off the bus and is not responding to commands.`; or one: `GPU 0000:01:00.0: GPU has fallen off the bus.`
/// and `GPU at PCI:0000:01:00: … has fallen off the bus`.
fn lost(line: &str) -> Option<KernelFact> {
    line.contains("fallen off the bus")
        .then(|| KernelFact::GpuLost(GpuLost { pci: line.split([' ', '\n', ',']).find_map(pci_address) }))
}

/// The PCI address in `NVRM: The NVIDIA GPU 0000:01:00.0`, first line of a message that says in a later one that this
/// GPU is gone.
pub(in crate::kernel_log) fn announced(text: &str) -> Option<String> {
    pci_address(text.strip_prefix("NVRM: The NVIDIA GPU ")?.split_whitespace().next()?)
}

/// `[PCI:]DOMAIN:BUS:DEVICE[.FUNCTION]`, all hexadecimal, to the end or a colon.
fn pci_address(text: &str) -> Option<String> {
    let text = text.strip_prefix("PCI:").unwrap_or(text);
    let text = text.strip_suffix(':').unwrap_or(text);
    let is_hex =
        |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut parts = text.split(':');
    let (domain, bus, device) = (parts.next()?, parts.next()?, parts.next()?);
    let (device, function) = device.split_once('.').unwrap_or((device, "0"));
    (parts.next().is_none() && [domain, bus, device, function].into_iter().all(is_hex))
        .then(|| text.to_owned())
}
