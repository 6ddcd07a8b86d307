//! The memory engine's store mode: buckets of a cache line or two with spare ones; items are copied out.

use std::cell::RefCell;

use alluvium_cache::{ConcurrentReads, Store};
use alluvium_index::slb::{Lookup, Reference};

use super::subject::{Subject, hash_of, key_of, value_word};

const VALUE_BYTES: usize = 64;
const KEY_BYTES: usize = size_of::<u64>();

/// Bytes of memory per item: the item, headers, its share of the index and some spare room.
const MEMORY_PER_ITEM: usize = 128;

/// A store of one partition whose readers validate what they read.
#[derive(Debug)]
pub struct StoreSubject {
    store: Store<ConcurrentReads>,
    value: RefCell<Vec<u8>>,
}

impl StoreSubject {
    /// The first word of the value that was copied last.
    #[inline(always)]
    fn word(value: &[u8]) -> Option<u64> {
        Some(u64::from_le_bytes(*value.first_chunk()?))
    }
}

impl Lookup for StoreSubject {
    type Key = u64;
    /// The value's first word: the whole value was copied, as by a get of the store.
    type Item<'a> = u64;

    #[inline(always)]
    fn hash(&self, key: &u64) -> u64 {
        hash_of(*key)
    }

    #[inline(always)]
    fn search(&self, key: &u64) -> Option<(Reference, u64)> {
        let mut value = self.value.borrow_mut();
        let place = self.store.get_located_into(&key.to_le_bytes(), &mut value)?;
        Some((Reference::new(place)?, Self::word(&value)?))
    }

    #[inline(always)]
    fn resolve(&self, key: &u64, reference: Reference) -> Option<u64> {
        let mut value = self.value.borrow_mut();
        let is_it = self.store.get_at_into(reference.number(), &key.to_le_bytes(), &mut value);
        if is_it { Self::word(&value) } else { None }
    }
}

impl Subject for StoreSubject {
    fn build(items: u32) -> Self {
        let store = Store::builder()
            .memory_limit((items as usize * MEMORY_PER_ITEM).max(1 << 20))
            .payload_bytes_mean(KEY_BYTES + VALUE_BYTES)
            .keep_places()
            .build_as::<ConcurrentReads>()
            .expect("memory for the items");
        let mut writer = store.writer(..).expect("a new store has no writer");
        for number in 0..items {
            let key = key_of(number);
            let value = value_word(key).to_le_bytes().repeat(VALUE_BYTES / KEY_BYTES);
            writer.set(&key.to_le_bytes(), &value).expect("the store was sized for the items");
        }
        Self { store, value: RefCell::default() }
    }

    #[inline(always)]
    fn is_right(key: u64, word: u64) -> bool {
        word == value_word(key)
    }
}
