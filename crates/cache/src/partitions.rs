//! The partitions of a cache or store: which one has a key, and batches of keys over all of them.

use std::sync::Arc;

use alluvium_base::KeyHash;

use crate::access::{Access, ConcurrentReads};
use crate::hasher::Hasher;
use crate::index::{Index, owner_of, partition_of};
use crate::item::{Metadata, Room, room};
use crate::partition::{Ahead, Partition, Policy};
use crate::pipeline;

/// See the module.
#[derive(Debug)]
pub(crate) struct Partitions<P: Policy, A: Access> {
    pub all: A::Parts<Partition<P, A>>,
    pub hasher: Hasher,
}

/// What the stages of a batch before the last determined about a key.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sought {
    hash: KeyHash,
    /// Ways of its bucket in the index whose tags equal the key's.
    ways: u32,
    /// Whether its item is not inline and has yet to be looked up in the region.
    may_be_in_region: bool,
}

impl<P: Policy> Clone for Partitions<P, ConcurrentReads> {
    /// The same partitions.
    fn clone(&self) -> Self {
        Self { all: Arc::clone(&self.all), hasher: self.hasher.clone() }
    }
}

impl<P: Policy, A: Access> Partitions<P, A> {
    /// The hash of a key.
    #[inline(always)]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        self.hasher.hash(key)
    }

    /// The partition of a hash.
    #[inline(always)]
    pub fn of(&self, hash: KeyHash) -> &Partition<P, A> {
        match &*self.all {
            [only] => only,
            several => &several[partition_of(hash, several.len())],
        }
    }

    /// Number of the partition of a hash.
    pub fn number_of(&self, hash: KeyHash) -> usize {
        partition_of(hash, self.all.len())
    }

    /// Which of `count` caches or stores of equal settings takes `key`.
    pub fn owner_of(&self, key: &[u8], count: usize) -> usize {
        owner_of(self.hash(key), count)
    }

    /// Calls `take` with value and metadata of the item of `key`, if there is one, and returns its result.
    #[inline(always)]
    pub fn get_with<T>(
        &self,
        key: &[u8],
        take: impl FnOnce(&Partition<P, A>, &[u8], Metadata) -> T,
    ) -> Option<T> {
        let hash = self.hash(key);
        let partition = self.of(hash);
        let mut room = room();
        partition.get_with(hash, key, Ahead::Nothing, &mut room, |value, metadata| {
            take(partition, value, metadata)
        })
    }

    /// Replaces the contents of `value` by the value of `key`: see [`Partition::get_into`].
    #[inline(always)]
    pub fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Option<usize> {
        let hash = self.hash(key);
        self.of(hash).get_into(hash, key, value)
    }

    /// Calls `take` for each of `keys`, in order, once its memory is in the cache.
    #[inline(always)]
    pub fn get_many_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut take: impl FnMut(usize, Option<(&Partition<P, A>, &[u8], Metadata)>),
    ) {
        let mut room: Room = room();
        let key = |number: usize| keys[number].as_ref();
        self.in_stages(keys.len(), false, key, |number, Sought { hash, ways, .. }| {
            let partition = self.of(hash);
            let outcome =
                partition.get_with(hash, key(number), Ahead::Loaded(ways), &mut room, |value, metadata| {
                    take(number, Some((partition, value, metadata)))
                });
            if outcome.is_none() {
                take(number, None);
            }
        });
    }

    /// Sets each key to its value, in order; `own` returns the partition of a hash if the caller may write it.
    ///
    /// # Errors
    /// The error of the last item that was refused; all others are set.
    #[inline(always)]
    pub fn set_each<'p, K: AsRef<[u8]>, V: AsRef<[u8]>, E: From<P::Refusal>>(
        &'p self,
        items: &[(K, V)],
        own: impl Fn(KeyHash) -> Result<&'p Partition<P, A>, E>,
    ) -> Result<(), E> {
        let mut outcome = Ok(());
        let key = |number: usize| {
            let (key, _) = &items[number];
            key.as_ref()
        };
        self.in_stages(items.len(), true, key, |number, Sought { hash, ways, .. }| {
            let value = items[number].1.as_ref();
            let set = own(hash).and_then(|partition| {
                let ahead = Ahead::Loaded(ways);
                partition.set(hash, key(number), ahead, value, Metadata::default()).map_err(E::from)
            });
            if set.is_err() {
                outcome = set;
            }
        });
        outcome
    }

    /// Takes `count` operations on keys through the stages; `last` does the rest once their memory is in the cache.
    #[inline(always)]
    fn in_stages<'k>(
        &self,
        count: usize,
        are_sets: bool,
        key: impl Fn(usize) -> &'k [u8],
        last: impl FnMut(usize, Sought),
    ) {
        pipeline::run(
            count,
            |number| {
                let hash = self.hash(key(number));
                let body = self.of(hash).body.get();
                if are_sets {
                    P::prefetch_insertion(body, hash);
                }
                match body.cells() {
                    Some(table) => table.spot(hash).bucket().prefetch(),
                    None => body.index.prefetch(body.index.place(hash)),
                }
                Sought { hash, ways: 0, may_be_in_region: true }
            },
            |Sought { hash, ways, may_be_in_region }| {
                let body = self.of(*hash).body.get();
                match body.cells() {
                    Some(table) if table.spot(*hash).prefetch_cells() => *may_be_in_region = false,
                    Some(_) => body.index.prefetch(body.index.place(*hash)),
                    None => {
                        *ways = body.prefetch_items(body.index.place(*hash));
                        *may_be_in_region = false;
                    }
                }
            },
            |Sought { hash, ways, may_be_in_region }| {
                if *may_be_in_region {
                    let body = self.of(*hash).body.get();
                    *ways = body.prefetch_items(body.index.place(*hash));
                }
            },
            last,
        );
    }
}
