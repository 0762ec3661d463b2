//! Numbers in text, each with exactly one accepted spelling, below its modulus.

use ark_bls12_381::Fq;
use ark_ff::{BigInt, BigInteger, PrimeField};

use super::FormatError;
use crate::Scalar;

/// Decimal digits of p, and so of any coordinate at most.
const FQ_DIGITS: usize = 115;
/// Decimal digits of r.
const FR_DIGITS: usize = 77;

/// A coordinate in decimal.
pub(super) fn decimal_fq(text: &str, field: &str) -> Result<Fq, FormatError> {
    let digits = canonical_decimal(text, field)?;
    decimal::<Fq, 6>(digits, FQ_DIGITS)
        .ok_or_else(|| FormatError::CoordinateTooLarge { field: field.to_owned() })
}

/// A public input in decimal.
pub(super) fn decimal_scalar(text: &str, field: &str) -> Result<Scalar, FormatError> {
    let digits = canonical_decimal(text, field)?;
    decimal::<Scalar, 4>(digits, FR_DIGITS)
        .ok_or_else(|| FormatError::InputTooLarge { field: field.to_owned() })
}

/// A public input as 64 hexadecimal digits, big-endian.
pub(super) fn hex_scalar(text: &str, field: &str) -> Result<Scalar, FormatError> {
    let bytes = hex_bytes::<32>(text, field, "write 64 lower-case hexadecimal digits, big-endian")?;
    from_be_bytes::<Scalar, 4>(&bytes).ok_or_else(|| FormatError::InputTooLarge { field: field.to_owned() })
}

/// Exactly `N` bytes as lower-case hexadecimal digits; `rule` says so to the reader.
pub(super) fn hex_bytes<const N: usize>(
    text: &str,
    field: &str,
    rule: &'static str,
) -> Result<[u8; N], FormatError> {
    let lower_case = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut bytes = [0; N];
    if !lower_case || hex::decode_to_slice(text, &mut bytes).is_err() {
        return Err(FormatError::NotCanonical { field: field.to_owned(), rule });
    }
    Ok(bytes)
}

/// The number below its modulus that big-endian `bytes` (8·`N` of them) spell.
pub(super) fn from_be_bytes<F, const N: usize>(bytes: &[u8]) -> Option<F>
where
    F: PrimeField<BigInt = BigInt<N>>,
{
    let mut number = BigInt::zero();
    for (limb, bytes) in number.0.iter_mut().zip(bytes.rchunks(8)) {
        *limb = bytes.iter().fold(0, |limb, byte| limb << 8 | u64::from(*byte));
    }
    F::from_bigint(number)
}

/// Big-endian bytes of a scalar in hexadecimal.
pub(super) fn scalar_to_hex(scalar: &Scalar) -> String {
    hex::encode(scalar.into_bigint().to_bytes_be())
}

fn canonical_decimal<'a>(text: &'a str, field: &str) -> Result<&'a str, FormatError> {
    let not_canonical = |rule| Err(FormatError::NotCanonical { field: field.to_owned(), rule });
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return not_canonical("write decimal digits only, without sign, blanks or exponent");
    }
    if text.len() > 1 && text.starts_with('0') {
        return not_canonical("write no leading zeros");
    }
    Ok(text)
}

/// `None` for what is not below the modulus; the length is looked at first, so that long texts cost nothing.
fn decimal<F, const N: usize>(digits: &str, most: usize) -> Option<F>
where
    F: PrimeField<BigInt = BigInt<N>>,
{
    if digits.len() > most {
        return None;
    }
    F::from_bigint(digits.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digit_limits_are_those_of_the_moduli() {
        assert_eq!(Fq::MODULUS.to_string().len(), FQ_DIGITS);
        assert_eq!(Scalar::MODULUS.to_string().len(), FR_DIGITS);
    }

    #[test]
    fn decimal_numbers_have_one_spelling() {
        assert_eq!(decimal_scalar("0", "x"), Ok(Scalar::from(0)));
        assert_eq!(decimal_scalar("33", "x"), Ok(Scalar::from(33)));
        for text in ["", "00", "033", "+33", "-1", " 33", "33 ", "3_3", "0x21", "3e1", "३३"] {
            let error = decimal_scalar(text, "x").expect_err(text);
            assert!(matches!(error, FormatError::NotCanonical { .. }), "{text}: {error}");
        }
    }

    #[test]
    fn numbers_from_the_modulus_up_are_refused() {
        let too_large = FormatError::InputTooLarge { field: "x".to_owned() };
        let mut r = Scalar::MODULUS;
        assert_eq!(decimal_scalar(&r.to_string(), "x"), Err(too_large.clone()));
        assert_eq!(hex_scalar(&hex::encode(r.to_bytes_be()), "x"), Err(too_large.clone()));
        assert_eq!(decimal_scalar(&"9".repeat(10_000), "x"), Err(too_large));
        r.sub_with_borrow(&BigInt::from(1_u8));
        assert_eq!(decimal_scalar(&r.to_string(), "x"), Ok(-Scalar::from(1)));
        assert_eq!(hex_scalar(&hex::encode(r.to_bytes_be()), "x"), Ok(-Scalar::from(1)));

        let too_large = FormatError::CoordinateTooLarge { field: "y".to_owned() };
        assert_eq!(decimal_fq(&Fq::MODULUS.to_string(), "y"), Err(too_large));
    }

    #[test]
    fn hexadecimal_numbers_have_one_spelling() {
        let digits = "0".repeat(62) + "2a";
        assert_eq!(hex_scalar(&digits, "x"), Ok(Scalar::from(42)));
        for text in [&digits[1..], &digits.to_uppercase(), &format!("0x{digits}"), ""] {
            assert!(matches!(hex_scalar(text, "x"), Err(FormatError::NotCanonical { .. })), "{text}");
        }
    }
}
