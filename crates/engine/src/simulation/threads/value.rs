//! Keys and values of the threaded simulation. A value identifies the write that made it.

use alluvium_base::checksum::checksum64;

use super::history::State;

/// Keys of a keyspace by purpose: two that are written together, one that counts, one that expires, others.
pub(super) const TWINS: [usize; 2] = [0, 1];
pub(super) const COUNTER: usize = 2;
/// The key whose values may expire. Only writes that do not depend on the present value change it.
pub(super) const EXPIRING: usize = 3;

/// Prefixes of a semi-sorted keyspace.
pub(super) const PREFIXES: usize = 2;

/// The lengths of values, by the last digit of their number.
const LENGTHS: [usize; 6] = [8, 60, 60, 300, 900, 2600];

/// First number of a write; lower numbers are those of a counter.
pub(super) const FIRST_NUMBER: i64 = 1 << 32;

/// The prefix of the key of this number.
pub(super) fn prefix(number: usize) -> String {
    format!("p{}", number.saturating_sub(1) % PREFIXES)
}

/// The key of this number.
pub(super) fn key(number: usize, has_prefix: bool) -> Vec<u8> {
    match has_prefix {
        true => format!("{}/{number}", prefix(number)).into_bytes(),
        false => format!("key-{number}").into_bytes(),
    }
}

/// The number of a key.
pub(super) fn number_of(key: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(key).ok()?;
    text.rsplit(['/', '-']).next()?.parse().ok()
}

/// The value of this number.
pub(super) fn value(number: i64) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    if number >= FIRST_NUMBER {
        let len = LENGTHS[number as usize % LENGTHS.len()];
        let mut block = number as u64;
        while bytes.len() < len {
            block = checksum64(&block.to_le_bytes(), 0);
            bytes.extend_from_slice(&block.to_le_bytes());
        }
        bytes.truncate(len);
    }
    bytes
}

/// The number of a value.
///
/// # Errors
/// A description if these bytes are not a value that was ever written.
pub(super) fn parse(bytes: Option<&[u8]>) -> Result<State, String> {
    let Some(bytes) = bytes else { return Ok(None) };
    let number = bytes.first_chunk().map(|first| i64::from_le_bytes(*first));
    match number {
        Some(number) if value(number) == bytes => Ok(Some(number)),
        _ => Err(format!("{} bytes never written: {:?}", bytes.len(), &bytes[..bytes.len().min(12)])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_tell_their_numbers() {
        for number in [0, -5, 7, FIRST_NUMBER, FIRST_NUMBER + 3, FIRST_NUMBER + 5] {
            let mut bytes = value(number);
            assert_eq!(parse(Some(&bytes)), Ok(Some(number)));
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            assert!(number < FIRST_NUMBER || bytes.len() == 8 || parse(Some(&bytes)).is_err());
        }
        assert_eq!(parse(None), Ok(None));
        assert_eq!((number_of(&key(5, true)), number_of(&key(5, false))), (Some(5), Some(5)));
    }
}
