//! Decimal numbers as memcached reads them: C's `strtol` and its checks.
//!
//! White space and a sign may precede the digits, and white space ends the number, whatever follows it. Unlike
//! memcached, nothing wraps: it takes a length of 4,294,967,301 for 5.

/// Reads the sign and the magnitude at the front of `text`. Returns `None` if there are no digits, if something other
/// than white space or NUL follows them, or if the magnitude has more than 64 bits.
fn read(text: &[u8]) -> Option<(bool, u64)> {
    let start = text.iter().position(|byte| !is_space(*byte))?;
    let (is_negative, digits) = match &text[start..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let mut magnitude: u64 = 0;
    for (position, byte) in digits.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            let is_end = position > 0 && (is_space(*byte) || *byte == 0);
            return is_end.then_some((is_negative, magnitude));
        }
        magnitude = magnitude.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    (!digits.is_empty()).then_some((is_negative, magnitude))
}

/// C's `isspace`.
fn is_space(byte: u8) -> bool {
    byte == b' ' || (b'\t'..=b'\r').contains(&byte)
}

/// Reads a signed number; `None` if it is none or has more than 64 bits.
#[inline]
pub(super) fn signed(text: &[u8]) -> Option<i64> {
    match read(text)? {
        (false, magnitude) => i64::try_from(magnitude).ok(),
        (true, magnitude) => 0i64.checked_sub_unsigned(magnitude),
    }
}

/// Reads an unsigned number; `None` if it is none, negative, or has more than 64 bits.
#[inline]
pub(super) fn unsigned(text: &[u8]) -> Option<u64> {
    match read(text)? {
        (is_negative, magnitude) if !is_negative || magnitude == 0 => Some(magnitude),
        _ => None,
    }
}

/// Reads an unsigned number of at most 32 bits.
#[inline]
pub(super) fn unsigned_32(text: &[u8]) -> Option<u32> {
    u32::try_from(unsigned(text)?).ok()
}

/// Reads the length of a value: 0 to 2^31 - 3, as memcached allows.
#[inline]
pub(super) fn length(text: &[u8]) -> Option<usize> {
    let length = unsigned_32(text)?;
    (length <= i32::MAX as u32 - 2).then_some(length as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_and_signs_are_taken_as_c_takes_them() {
        for (text, number) in [
            (&b"0"[..], Some(0)),
            (b"007", Some(7)),
            (b"+5", Some(5)),
            (b"-5", Some(-5)),
            (b"\t 5", Some(5)),
            (b"5\r", Some(5)),
            (b"5 x", Some(5)),
            (b"5\0x", Some(5)),
            (b"9223372036854775807", Some(i64::MAX)),
            (b"-9223372036854775808", Some(i64::MIN)),
            (b"9223372036854775808", None),
            (b"-9223372036854775809", None),
            (b"", None),
            (b"-", None),
            (b"+", None),
            (b"--5", None),
            (b"- 5", None),
            (b"5x", None),
            (b"x", None),
            (b" ", None),
            (b"\0", None),
            (b"0x10", None),
            (b"1.5", None),
        ] {
            assert_eq!(signed(text), number, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn unsigned_numbers_have_no_sign_but_zero() {
        assert_eq!(unsigned(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(unsigned(b"18446744073709551616"), None);
        assert_eq!(unsigned(b"-0"), Some(0));
        assert_eq!(unsigned(b"-1"), None);
        assert_eq!(unsigned_32(b"4294967295"), Some(u32::MAX));
        assert_eq!(unsigned_32(b"4294967296"), None);
        assert_eq!(length(b"2147483645"), Some(2_147_483_645));
        assert_eq!(length(b"2147483646"), None);
        assert_eq!(length(b"-1"), None);
    }
}
