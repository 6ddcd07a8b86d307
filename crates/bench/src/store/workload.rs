//! The items of `bench store`. Every key and value is a function of the item's number, so that any answer can be
//! checked without keeping the data.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::error::BenchError;
use crate::random::{Random, mix, unmix};

/// Minimum bytes of a key: it contains the permuted number of the item.
pub const KEY_BYTES_MIN: usize = 8;

/// Numbers of absent items start here; those of present ones are smaller.
const ABSENT: u64 = 1 << 62;

/// Keys and values by item number and version.
///
/// A key starts with a bijection of the item's number, so keys are unique, uniform and invertible. A value is a
/// pseudorandom sequence determined by (item, version): it does not compress, and a value of another item, of another
/// version or with a wrong byte is detected.
#[derive(Debug)]
pub struct Workload {
    seed: u64,
    items: u64,
    /// Items with lower numbers are present, the others have been removed.
    live_items: AtomicU64,
    key_bytes: usize,
    value_bytes: usize,
    /// The last acknowledged version of each item, modulo 256; empty if nothing is ever overwritten.
    versions: Vec<AtomicU8>,
}

impl Workload {
    /// `items` items. `has_updates` tells whether versions are kept, at a byte of memory per item.
    pub fn new(seed: u64, items: u64, key_bytes: usize, value_bytes: usize, has_updates: bool) -> Self {
        let versions = if has_updates { (0..items).map(|_| AtomicU8::new(0)).collect() } else { Vec::new() };
        Self { seed, items, live_items: AtomicU64::new(items), key_bytes, value_bytes, versions }
    }

    /// Number of items.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Number of items that are present: those with lower numbers.
    pub fn live_items(&self) -> u64 {
        self.live_items.load(Ordering::Relaxed)
    }

    /// Declares that only this many items remain.
    pub fn set_live_items(&self, items: u64) {
        self.live_items.store(items, Ordering::Relaxed);
    }

    /// Bytes of key and value of an item.
    pub fn item_bytes(&self) -> u64 {
        (self.key_bytes + self.value_bytes) as u64
    }

    /// Bytes of memory that the workload itself takes; they are part of the process's resident memory.
    pub fn memory_bytes(&self) -> u64 {
        self.versions.len() as u64
    }

    /// Writes the key of `item` to `key`.
    #[inline]
    pub fn key(&self, item: u64, key: &mut Vec<u8>) {
        key.resize(self.key_bytes, 0);
        let permuted = mix(item ^ self.seed);
        key[..8].copy_from_slice(&permuted.to_be_bytes());
        Random::new(permuted, self.seed).fill(&mut key[8..]);
    }

    /// Writes the key of the absent item `number` to `key`; no present item has it.
    #[inline]
    pub fn absent_key(&self, number: u64, key: &mut Vec<u8>) {
        self.key(ABSENT | (number & (ABSENT - 1)), key);
    }

    /// The item that has this `key`, if it is a key of this workload.
    pub fn item_of(&self, key: &[u8]) -> Option<u64> {
        let permuted = u64::from_be_bytes(key.get(..8)?.try_into().ok()?);
        let item = unmix(permuted) ^ self.seed;
        let mut right = Vec::new();
        self.key(item, &mut right);
        (item < self.items && key == right).then_some(item)
    }

    /// Writes the value of `item` at `version` to `value`.
    #[inline]
    pub fn value(&self, item: u64, version: u8, value: &mut Vec<u8>) {
        value.resize(self.value_bytes, 0);
        Random::new(item ^ self.seed.rotate_left(17), u64::from(version)).fill(value);
    }

    /// The last acknowledged version of `item`. Pairs with [`Self::acknowledge`].
    #[inline]
    pub fn version(&self, item: u64) -> u8 {
        self.versions.get(item as usize).map_or(0, |version| version.load(Ordering::Acquire))
    }

    /// Records that the put of `item` at `version` has returned. Each item has one writing thread at a time.
    #[inline]
    pub fn acknowledge(&self, item: u64, version: u8) {
        self.versions[item as usize].store(version, Ordering::Release);
    }

    /// Checks the answer to a get of a present item. `version_before` was read before the get started: the answer may
    /// be that version, any version acknowledged meanwhile, or the one being written now.
    pub fn check(&self, item: u64, version_before: u8, answer: Option<&[u8]>) -> Result<(), BenchError> {
        let Some(answer) = answer else {
            return Err(BenchError::WrongAnswer(format!("item {item} is absent; it was put")));
        };
        let mut right = Vec::with_capacity(self.value_bytes);
        self.value(item, version_before, &mut right);
        if answer == right {
            return Ok(());
        }
        let newer_max = self.version(item).wrapping_sub(version_before).saturating_add(1);
        for newer in 1..=newer_max {
            self.value(item, version_before.wrapping_add(newer), &mut right);
            if answer == right {
                return Ok(());
            }
        }
        Err(BenchError::WrongAnswer(format!(
            "item {item} has not the value of version {version_before} or later"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload() -> Workload {
        Workload::new(7, 100, 16, 100, true)
    }

    #[test]
    fn keys_are_unique_and_turn_back_into_items() {
        let workload = workload();
        let mut seen = std::collections::HashSet::new();
        let mut key = Vec::new();
        for item in 0..100 {
            workload.key(item, &mut key);
            assert_eq!(key.len(), 16);
            assert_eq!(workload.item_of(&key), Some(item));
            assert!(seen.insert(key.clone()));
            workload.absent_key(item, &mut key);
            assert_eq!(workload.item_of(&key), None);
            assert!(seen.insert(key.clone()));
        }
        key[15] ^= 1;
        assert_eq!(workload.item_of(&key), None);
    }

    #[test]
    fn wrong_values_are_told_apart() {
        let workload = workload();
        let mut value = Vec::new();
        workload.value(5, 0, &mut value);
        workload.check(5, 0, Some(&value)).unwrap();
        workload.check(6, 0, Some(&value)).unwrap_err();
        workload.check(5, 0, None).unwrap_err();
        value[99] ^= 1;
        workload.check(5, 0, Some(&value)).unwrap_err();
    }

    #[test]
    fn versions_from_before_the_get_to_the_one_being_written_are_right() {
        let workload = workload();
        workload.acknowledge(5, 3);
        for (version, is_right) in [(0, false), (1, true), (2, true), (3, true), (4, true), (5, false)] {
            let mut value = Vec::new();
            workload.value(5, version, &mut value);
            assert_eq!(workload.check(5, 1, Some(&value)).is_ok(), is_right, "version {version}");
        }
    }

    #[test]
    fn short_values_and_long_keys() {
        let workload = Workload::new(1, 10, 33, 0, false);
        let mut key = Vec::new();
        workload.key(9, &mut key);
        assert_eq!((key.len(), workload.item_of(&key)), (33, Some(9)));
        workload.check(9, 0, Some(&[])).unwrap();
    }
}
