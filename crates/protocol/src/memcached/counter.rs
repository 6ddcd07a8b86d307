//! Arithmetic on values.

use super::number;
use crate::integer;

/// Which way a number is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `incr`: wraps at 2^64.
    Increment,
    /// `decr`: stops at 0.
    Decrement,
}

impl Direction {
    /// The number that `value` becomes. Returns `None` if `value` is not the decimal text of an unsigned number of 64
    /// bits; as in memcached, white space may precede it, and white space with anything behind it may follow.
    pub fn apply(self, value: &[u8], delta: u64) -> Option<u64> {
        let number = number::unsigned(value)?;
        Some(match self {
            Self::Increment => number.wrapping_add(delta),
            Self::Decrement => number.saturating_sub(delta),
        })
    }
}

/// Appends to `out` the value that becomes `number` where a value of `old_bytes` bytes stood: its decimal text, and
/// spaces up to the old length. memcached writes numbers in place where no reply still uses the item, and `get` returns
/// the spaces; the protocol allows them and does not demand them.
pub fn write_count(number: u64, old_bytes: usize, out: &mut Vec<u8>) {
    let start = out.len();
    integer::write_unsigned(number, out);
    if out.len() < start + old_bytes {
        out.resize(start + old_bytes, b' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_above_and_stop_below() {
        use Direction::{Decrement, Increment};
        for (direction, value, delta, number) in [
            (Increment, &b"5"[..], 3, Some(8)),
            (Increment, b"18446744073709551615", 1, Some(0)),
            (Increment, b"18446744073709551615", u64::MAX, Some(u64::MAX - 1)),
            (Increment, b"18446744073709551616", 1, None),
            (Decrement, b"5", 3, Some(2)),
            (Decrement, b"5", 6, Some(0)),
            (Decrement, b"0", u64::MAX, Some(0)),
            (Increment, b"9  ", 1, Some(10)),
            (Increment, b" 9", 1, Some(10)),
            (Increment, b"9 lives", 1, Some(10)),
            (Increment, b"9lives", 1, None),
            (Increment, b"-1", 1, None),
            (Increment, b"", 1, None),
            (Increment, b" ", 1, None),
        ] {
            assert_eq!(direction.apply(value, delta), number, "{direction:?} {}", value.escape_ascii());
        }
    }

    #[test]
    fn the_length_never_shrinks() {
        for (number, old_bytes, value) in [
            (99, 3, &b"99 "[..]),
            (0, 20, b"0                   "),
            (100, 2, b"100"),
            (7, 1, b"7"),
            (7, 0, b"7"),
        ] {
            let mut out = b"x".to_vec();
            write_count(number, old_bytes, &mut out);
            assert_eq!(&out[1..], value);
        }
    }
}
