//! The items. Keys and values are functions of the item's number, so every answer can be verified.

use alluvium_bench::BenchError;
use alluvium_bench::random::mix;

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;
/// A key.
pub type Key = [u8; KEY_BYTES];

/// Bytes of the number at the beginning of a value.
const NUMBER_BYTES: usize = 8;
/// Bytes of a value that one random number yields: more of its own would be a large part of a get's time.
const BLOCK_BYTES: usize = 64;
/// Distances by which that number is rotated: no multiples of 8, so that no bytes repeat and no value compresses.
const ROTATIONS: [u32; BLOCK_BYTES / 8] = [0, 11, 21, 31, 37, 43, 53, 59];

/// Items that share a prefix.
pub const GROUP_ITEMS: u64 = 10;
/// Bytes of the prefix.
pub const PREFIX_BYTES: usize = 8;

/// The key of an item, at a random place among all keys. Different numbers have different keys.
#[inline]
pub fn key_of(number: u64) -> Key {
    key_from(mix(number), mix(number ^ SALT))
}

/// The key at this place of a queue.
pub fn queue_key(number: u64) -> Key {
    u128::from(number).to_be_bytes()
}

/// The prefix of a group.
pub fn prefix_of(group: u64) -> [u8; PREFIX_BYTES] {
    mix(group).to_be_bytes()
}

/// The key of an item in groups of [`GROUP_ITEMS`].
pub fn group_key(number: u64) -> Key {
    key_from(mix(number / GROUP_ITEMS), mix(number ^ SALT))
}

const SALT: u64 = 0x5bd1_e995_9d1b_54a5;

fn key_from(first: u64, second: u64) -> Key {
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&first.to_be_bytes());
    key[8..].copy_from_slice(&second.to_be_bytes());
    key
}

/// The value of an item.
pub fn value_of(number: u64, bytes: usize) -> Vec<u8> {
    let mut value = vec![0; bytes];
    set_value(&mut value, number);
    value
}

/// Makes `value` the value of an item.
pub fn set_value(value: &mut [u8], number: u64) {
    let start = value.len().min(NUMBER_BYTES);
    value[..start].copy_from_slice(&number.to_le_bytes()[..start]);
    for (block, bytes) in value[start..].chunks_mut(BLOCK_BYTES).enumerate() {
        let random = block_random(number, block);
        for (word, rotation) in bytes.chunks_mut(8).zip(ROTATIONS) {
            let expected = random.rotate_left(rotation).to_le_bytes();
            word.copy_from_slice(&expected[..word.len()]);
        }
    }
}

/// Whether `value` is the value of an item, to the last byte.
pub fn is_value(value: &[u8], number: u64, bytes: usize) -> bool {
    if value.len() != bytes {
        return false;
    }
    let (start, rest) = value.split_at(bytes.min(NUMBER_BYTES));
    // Differences are collected without branches, so that the check costs little beside a get.
    let mut difference = u64::from(start != &number.to_le_bytes()[..start.len()]);
    for (block, bytes) in rest.chunks(BLOCK_BYTES).enumerate() {
        let random = block_random(number, block);
        for (word, rotation) in bytes.chunks(8).zip(ROTATIONS) {
            let expected = random.rotate_left(rotation);
            difference |= match word.try_into() {
                Ok(word) => u64::from_le_bytes(word) ^ expected,
                Err(_) => u64::from(word != &expected.to_le_bytes()[..word.len()]),
            };
        }
    }
    difference == 0
}

/// The number of the item that has this value.
pub fn number_of(value: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(value.get(..NUMBER_BYTES)?.try_into().ok()?))
}

fn block_random(number: u64, block: usize) -> u64 {
    mix(mix(number).wrapping_add(block as u64))
}

/// The error about a wrong value of an item.
pub fn wrong(number: u64) -> BenchError {
    BenchError::WrongAnswer(format!("another value under the key of item {number}"))
}

/// The error about a missing item.
pub fn missing(number: u64) -> BenchError {
    BenchError::WrongAnswer(format!("item {number} was not found"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_that_of_one_item_and_length() {
        for bytes in [0, 1, 7, 8, 9, 63, 72, 73, 100, 4096] {
            let value = value_of(77, bytes);
            assert!(is_value(&value, 77, bytes));
            assert!(!is_value(&value, 77, bytes + 1));
            assert_eq!(is_value(&value, 78, bytes), bytes == 0);
            for at in 0..bytes {
                let mut changed = value.clone();
                changed[at] ^= 1;
                assert!(!is_value(&changed, 77, bytes), "byte {at} of {bytes}");
            }
        }
        assert_eq!(number_of(&value_of(77, 8)), Some(77));
        assert_eq!(number_of(&value_of(77, 7)), None);
    }

    #[test]
    fn items_of_a_group_share_their_prefix() {
        let keys: Vec<Key> = (0..30).map(group_key).collect();
        for (number, key) in keys.iter().enumerate() {
            assert_eq!(key[..PREFIX_BYTES], prefix_of(number as u64 / GROUP_ITEMS));
        }
        assert_eq!(keys.iter().collect::<std::collections::HashSet<_>>().len(), 30);
        assert!(queue_key(255) < queue_key(256));
    }
}
