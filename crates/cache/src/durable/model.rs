//! A partition over words in memory, for the model checker.

use std::sync::Arc;

use alluvium_base::KeyHasher;
use alluvium_io::SystemClock;

use crate::item::Metadata;
use crate::memory::UNIT_BYTES;
use crate::sync::{AtomicU64, Ordering};

use super::core::{Core, Start, format};
use super::descriptor::VERSION_BITS;
use super::geometry::Geometry;
use super::medium::Medium;
use super::part::Sought;
use super::shared::Shared;
use super::write_cache::Shape;

/// Four zones, in each of which four items of 8+16 bytes have room.
const GEOMETRY: Geometry = Geometry {
    partitions: 1,
    zones: 4,
    zone_bytes: 128,
    buckets: 1,
    dictionaries: 0,
    version_bits: VERSION_BITS,
};

/// Words that keep everything.
#[derive(Debug)]
struct Words(Box<[AtomicU64]>);

impl Medium for Words {
    fn len(&self) -> usize {
        self.0.len() * UNIT_BYTES
    }

    fn load(&self, at: usize) -> u64 {
        self.0[at / UNIT_BYTES].load(Ordering::Relaxed)
    }

    fn store(&self, at: usize, word: u64) {
        self.0[at / UNIT_BYTES].store(word, Ordering::Relaxed);
    }

    fn flush(&self, _at: usize) {}

    fn fence(&self) {}

    fn flushes(&self) -> u64 {
        0
    }
}

/// See the module.
#[derive(Debug)]
pub struct Model {
    core: Core<Words>,
}

impl Model {
    /// A partition without items, in front of which is a write cache of one set of slots, or none.
    pub fn new(has_write_cache: bool) -> Self {
        let words = (0..GEOMETRY.file_bytes() / UNIT_BYTES).map(|_| AtomicU64::new(0)).collect();
        let medium = Words(words);
        format(&medium, &GEOMETRY);
        let shared = Shared {
            medium,
            geometry: GEOMETRY,
            hasher: KeyHasher::Xxh3 { seed: 1 },
            clock: Arc::new(SystemClock::default()),
            latest_ms: AtomicU64::new(0),
            packing: None,
            write_cache: has_write_cache.then_some(Shape { sets: 1, slot_units: 2 }),
            number: u64::MAX,
        };
        let core = Core::open(shared, Start::New).unwrap_or_else(|error| panic!("no memory: {error}"));
        Self { core }
    }

    fn sought<'k>(&self, key: &'k [u8]) -> Sought<'k> {
        self.core.parts[0].sought(self.core.shared.hash(key), key)
    }

    /// A copy of the value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.core.parts[0].get_with(self.sought(key), |value, _| value.to_vec())
    }

    /// Gives `key` a value.
    pub fn set(&self, key: &[u8], value: &[u8]) {
        let set = self.core.parts[0].set(self.sought(key), value, Metadata::default());
        set.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Removes the item of `key`; returns whether there was one.
    pub fn remove(&self, key: &[u8]) -> bool {
        self.core.parts[0].remove(self.sought(key))
    }

    /// Removes all items.
    pub fn clear(&self) {
        self.core.parts[0].clear();
    }

    /// Moves all items of the write cache to the zones.
    pub fn cool_all(&self) {
        self.core.parts[0].cool_all();
    }
}
