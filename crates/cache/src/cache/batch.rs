//! Batches: the memory accesses of many operations overlap (Lim's thesis, §5.3.3, "multi-stage prefetching").
//!
//! ```text
//!  for each key: hash, start loading the bucket      the buckets' misses overlap
//!  for each key: compare tags, start loading items   the items' misses overlap
//!  for each key: compare the key, take the value     nothing is waited for
//! ```
//!
//! MICA runs the stages as a pipeline of pairs of packets; here a stage is a loop over up to 32 keys, which keeps as
//! many misses in flight as a core has buffers for.

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::error::TooLarge;
use crate::item::{ItemView, Metadata, room};

use super::handle::Cache;

/// Keys that go through the stages together; longer batches are parted.
pub const BATCH_LEN: usize = 32;

/// What the stages before the last found out about each key.
#[derive(Default)]
struct Stages {
    hashes: [KeyHash; BATCH_LEN],
    /// Ways of the bucket whose tags are the key's.
    ways: [u32; BATCH_LEN],
}

impl<A: Access> Cache<A> {
    /// Calls `take` for each of `keys`, in order, with its number and its item. As [`get_with`](Self::get_with), at
    /// several times its rate.
    ///
    /// # Panics
    /// When `take` writes to an [`Exclusive`](crate::Exclusive) cache.
    #[inline]
    pub fn get_many_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut take: impl FnMut(usize, Option<ItemView<'_>>),
    ) {
        let mut stages = Stages::default();
        let mut room = room();
        for (batch, keys) in keys.chunks(BATCH_LEN).enumerate() {
            self.prefetch(keys, &mut stages);
            let prefetched = stages.hashes.iter().zip(&stages.ways);
            for (number, (key, (&hash, &ways))) in keys.iter().zip(prefetched).enumerate() {
                let partition = self.partition(hash);
                let number = batch * BATCH_LEN + number;
                let outcome = self.get_hashed(partition, hash, key.as_ref(), ways, &mut room, |item| {
                    take(number, Some(item))
                });
                if outcome.is_none() {
                    take(number, None);
                }
            }
        }
    }

    /// Copies of the values of `keys`, in their order.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Option<Vec<u8>>> {
        let mut values = Vec::with_capacity(keys.len());
        self.get_many_with(keys, |_, item| values.push(item.map(|item| item.value.to_vec())));
        values
    }

    /// Sets each key to its value, in order.
    ///
    /// # Errors
    /// [`TooLarge`] of the last item that is; all others are set.
    pub fn set_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, items: &[(K, V)]) -> Result<(), TooLarge> {
        let mut outcome = Ok(());
        let mut stages = Stages::default();
        for items in items.chunks(BATCH_LEN) {
            let keys: [&[u8]; BATCH_LEN] =
                std::array::from_fn(|number| items.get(number).map_or(&[][..], |(key, _)| key.as_ref()));
            self.prefetch(&keys[..items.len()], &mut stages);
            for &hash in &stages.hashes[..items.len()] {
                self.partition(hash).prefetch_ghost(hash);
            }
            for ((key, value), (&hash, &ways)) in items.iter().zip(stages.hashes.iter().zip(&stages.ways)) {
                let (key, value) = (key.as_ref(), value.as_ref());
                let set = self.partition(hash).set(hash, key, ways, value, Metadata::default());
                outcome = set.and(outcome);
            }
        }
        outcome
    }

    /// The first two stages.
    #[inline(always)]
    fn prefetch<K: AsRef<[u8]>>(&self, keys: &[K], stages: &mut Stages) {
        for (key, hash) in keys.iter().zip(&mut stages.hashes) {
            *hash = self.hash(key.as_ref());
            let body = self.partition(*hash).current_body();
            body.index.prefetch(body.index.place(*hash));
        }
        let payload = self.settings.payload_bytes_mean;
        for (&hash, ways) in stages.hashes[..keys.len()].iter().zip(&mut stages.ways) {
            let body = self.partition(hash).current_body();
            *ways = body.prefetch_items(body.index.place(hash), payload);
        }
    }
}
