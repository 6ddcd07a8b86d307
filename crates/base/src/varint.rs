//! Unsigned LEB128: seven bits a byte, least significant first, high bit set on all bytes but the last.

/// Maximum number of bytes that [`write()`] appends.
pub const LEN_MAX: usize = 10;

/// Number of bytes that `value` takes.
#[inline]
pub fn encoded_len(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// Appends `value` to `out`.
#[inline]
pub fn write(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a value from the front of `bytes` and returns it with the number of bytes that it took. Returns `None` if the
/// input ends early or the value does not fit in 64 bits.
#[inline]
pub fn read(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    if first < 0x80 {
        return Some((u64::from(first), 1));
    }
    let mut value = u64::from(first & 0x7f);
    for (position, &byte) in bytes.iter().enumerate().take(LEN_MAX).skip(1) {
        let part = u64::from(byte & 0x7f);
        if position == LEN_MAX - 1 && byte > 1 {
            return None;
        }
        value |= part << (7 * position);
        if byte < 0x80 {
            return Some((value, position + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            write(value, &mut bytes);
            prop_assert_eq!(bytes.len(), encoded_len(value));
            prop_assert_eq!(read(&bytes), Some((value, bytes.len())));
            for cut in 0..bytes.len() {
                prop_assert_eq!(read(&bytes[..cut]), None);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = read(&bytes);
        }
    }

    #[test]
    fn more_than_64_bits_are_refused() {
        assert_eq!(read(&[0xff; 10]), None);
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]), Some((u64::MAX, 10)));
    }
}
