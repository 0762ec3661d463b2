//! What a proof in progress is estimated to take, for the books of the memory budget.

use sexton_groth16::Shape;

/// Bytes held for each element of the evaluation domain while a proof is made: the three rows of the constraint system
/// with their coefficients (about 300 B), the assignment, and the vectors of the quotient polynomial.
const BYTES_PER_ELEMENT: u64 = 512;

/// An estimate of what proving an instance of `shape` takes besides the key, in bytes. It is not measured.
#[must_use]
pub fn working_bytes(shape: Shape) -> u64 {
    let constraints: u64 = match shape {
        Shape::Mimc { log2_size, .. } => 1 << log2_size,
        Shape::Sha256 { blocks, .. } => 42_000 * u64::from(blocks),
        Shape::Merkle { depth, .. } => 245 * u64::from(depth),
    };
    constraints.next_power_of_two() * BYTES_PER_ELEMENT
}

/// Reads a memory budget as the supervisor hands it over: a whole number of bytes.
///
/// # Errors
/// One line that names the variable, the value and what is accepted.
pub fn parse_budget(text: &str) -> Result<u64, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let bytes = text.parse().ok().filter(|bytes| digits && *bytes > 0);
    bytes.ok_or_else(|| {
        format!("SEXTON_MEMORY_BUDGET_BYTES is {text:?}: use a whole number of bytes above 0, without a unit")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_budget_is_never_a_default() {
        assert_eq!(parse_budget("1073741824"), Ok(1 << 30));
        for text in ["", "0", "-1", "+1", "1GiB", " 1", "1.5", "99999999999999999999999"] {
            assert!(parse_budget(text).unwrap_err().contains("SEXTON_MEMORY_BUDGET_BYTES"), "{text:?}");
        }
    }

    #[test]
    fn larger_circuits_are_estimated_larger() {
        let bytes = |shape: &str| working_bytes(shape.parse().unwrap());
        assert_eq!(bytes("mimc-2^12"), 2 << 20);
        assert!(bytes("sha256-4") > bytes("sha256-1"));
        assert!(bytes("merkle-32") > bytes("merkle-2"));
    }
}
