//! Decimal integers as Redis reads and writes them.

/// Maximum length of the text of a 64-bit integer: a sign and 19 digits, or 20 digits.
pub const TEXT_BYTES_MAX: usize = 20;

/// Reads a canonical decimal `i64`: an optional `-`, no `+`, no leading zeros, no spaces, no `-0`. This is Redis's
/// `string2ll`, so the output of [`write()`] is the only text that reads as its number. Returns `None` for everything
/// else.
#[inline]
pub fn parse(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [] => return None,
        [b'0'] => return if negative { None } else { Some(0) },
        [b'0', ..] => return None,
        _ if digits.len() >= TEXT_BYTES_MAX => return None,
        _ => {}
    }
    // At most 19 digits: below 10^19, which fits in 64 bits unsigned.
    let mut magnitude: u64 = 0;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        magnitude = magnitude * 10 + u64::from(digit);
    }
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Reads a canonical decimal `u64`, as [`parse`] does; cursors use all 64 bits.
pub fn parse_unsigned(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > TEXT_BYTES_MAX || (text[0] == b'0' && text.len() > 1) {
        return None;
    }
    text.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Appends `number` in decimal to `out`.
#[inline]
pub fn write(number: i64, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    write_unsigned(number.unsigned_abs(), out);
}

/// Appends `number` in decimal to `out`.
#[inline]
pub fn write_unsigned(mut number: u64, out: &mut Vec<u8>) {
    let mut text = [0; TEXT_BYTES_MAX];
    let mut start = text.len();
    loop {
        start -= 1;
        text[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_canonical_text_is_a_number() {
        for text in [
            "",
            "-",
            "+1",
            " 1",
            "1 ",
            "01",
            "-0",
            "-01",
            "1a",
            "9223372036854775808",
            "-9223372036854775809",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parse(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(parse(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse(b"0"), Some(0));
        assert_eq!(parse_unsigned(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_unsigned(b"18446744073709551616"), None);
        assert_eq!(parse_unsigned(b"00"), None);
    }

    proptest! {
        #[test]
        fn numbers_are_read_back(number: i64, unsigned: u64, shift in 0u32..64) {
            let mut text = Vec::new();
            write(number >> shift, &mut text);
            prop_assert_eq!(&text, &(number >> shift).to_string().into_bytes());
            prop_assert_eq!(parse(&text), Some(number >> shift));
            text.clear();
            write_unsigned(unsigned >> shift, &mut text);
            prop_assert_eq!(parse_unsigned(&text), Some(unsigned >> shift));
        }

        #[test]
        fn agrees_with_the_standard_library(text in "-?[0-9]{0,21}") {
            let expected = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
            prop_assert_eq!(parse(text.as_bytes()), expected);
        }
    }
}
