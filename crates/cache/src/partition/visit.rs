//! Scans and statistics.

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::index::bucket::WAYS;
use crate::index::{Versioned, first_hash};
use crate::item::{ItemView, Metadata};
use crate::memory::UNIT_BYTES;
use crate::sync::{AtomicU64, Ordering, spin_hint};

use super::{Partition, Stored};

/// An item copied out of a bucket.
pub(super) struct Copied {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub metadata: Metadata,
}

impl<A: Access> Partition<A> {
    /// Calls `visit` for the items, inline or not, whose hashes have low halves from `from` to the end of that hash's
    /// bucket. Returns where the next bucket starts, if there is one. Hashes stay the same when the index grows.
    pub fn visit_from(&self, from: u64, visit: &mut impl FnMut(&[u8], ItemView<'_>)) -> Option<u64> {
        let mut copied: Vec<Copied> = Vec::with_capacity(WAYS);
        let next = loop {
            copied.clear();
            let body = self.body.get();
            let place = body.index.place(KeyHash::from_halves(0, from));
            let (bucket, number) = (body.index.bucket(place), place.bucket);
            let version = A::READS_BESIDE_WRITES.then(|| bucket.version().begin_read());
            // An item that moves between its cell and the logs meanwhile also changes the bucket.
            self.copy_inline(body, number, &mut copied);
            let inline_items = copied.len();
            let mut entries = Vec::with_capacity(WAYS);
            for way in 0..WAYS {
                let entry = bucket.entry(way);
                if entry.is_empty() {
                    continue;
                }
                // Beside a writer the header may be garbage; `header` refuses one that is not sound.
                if let Some(header) = body.header(entry) {
                    let log = body.log(entry);
                    let stored = Stored { log, unit: log.layout().unit(entry.position()), header };
                    let mut item = Copied {
                        key: vec![0; header.key_len()],
                        value: vec![0; header.value_len()],
                        metadata: stored.metadata(),
                    };
                    stored.copy_key(&mut item.key);
                    stored.copy_value(&mut item.value);
                    // An item that is being moved is in both places.
                    if copied[..inline_items].iter().all(|inline| inline.key != item.key) {
                        copied.push(item);
                    }
                    entries.push(entry);
                }
            }
            let is_valid = version.is_none_or(|version| {
                bucket.version().is_unchanged(version)
                    && self.body.is_current(body)
                    && entries.iter().all(|&entry| body.log(entry).contains(entry.position()))
            });
            if is_valid {
                break first_hash(number + 1, body.index.buckets().len());
            }
            spin_hint();
        };
        for item in copied.iter().filter(|item| !self.is_expired(item.metadata)) {
            // An earlier call visited the hashes below `from`, in an index with other buckets.
            if self.common.hasher.hash(&item.key).low() >= from {
                visit(&item.key, self.view(&item.value, item.metadata));
            }
        }
        next
    }

    /// The partition's statistics.
    pub fn stats(&self) -> crate::cache::PartitionStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (hits, misses) = self.reads.sum();
        let body = self.body.get();
        let counters = &self.counters;
        crate::cache::PartitionStats {
            hits,
            misses,
            items: counters.items(),
            inserted: load(&counters.inserted),
            replaced: load(&counters.replaced),
            updated_in_place: load(&counters.updated_in_place),
            removed: load(&counters.removed),
            evicted: load(&counters.evicted),
            evicted_by_index: load(&counters.evicted_by_index),
            expired: load(&counters.expired),
            reinserted: load(&counters.reinserted),
            too_large: load(&counters.too_large),
            memory_bytes: (body.shape.bytes() + size_of::<Self>()) as u64,
            index_bytes: body.shape.index_bytes() as u64,
            index_bytes_now: body.index_bytes() as u64,
            inline_items: load(&counters.inline),
            log_bytes_used: body.logs.iter().map(|log| log.used() * UNIT_BYTES as u64).sum(),
        }
    }
}
