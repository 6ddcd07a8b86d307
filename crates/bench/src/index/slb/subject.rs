//! What the indexes under test share: items by number, and keys that are derived from the number.

use alluvium_index::slb::Lookup;

use crate::random::mix;

/// An item: a key of 8 bytes and a value of 64, as in the thesis.
#[derive(Clone, Debug)]
pub struct Item {
    /// The key.
    pub key: u64,
    /// The value, each word the same.
    pub value: [u64; 8],
}

impl Item {
    /// The item of a key.
    pub fn of(key: u64) -> Self {
        Self { key, value: [value_word(key); 8] }
    }
}

/// The content of every word of a key's value.
#[inline(always)]
pub fn value_word(key: u64) -> u64 {
    key.rotate_left(23) ^ 0x5bd1_e995_7b7d_159d
}

/// Key of item `number`.
#[inline(always)]
pub fn key_of(number: u32) -> u64 {
    mix(u64::from(number) ^ 0x9e37_79b9_7f4a_7c15)
}

/// A hash of a key that takes one multiplication, so that the benchmark measures memory.
#[inline(always)]
pub fn hash_of(key: u64) -> u64 {
    let product = u128::from(key ^ 0xa076_1d64_78bd_642f) * 0xe703_7ed1_a0b4_28db_u128;
    (product >> 64) as u64 ^ product as u64
}

/// An index under test.
pub trait Subject: Lookup<Key = u64> + Sized {
    /// An index of the items 0 to `items` - 1.
    fn build(items: u32) -> Self;

    /// Whether an item is that of the key.
    fn is_right(key: u64, item: Self::Item<'_>) -> bool;
}

/// `count` items, each at the index of its number.
pub fn items(count: u32) -> Vec<Item> {
    (0..count).map(|number| Item::of(key_of(number))).collect()
}
