//! Batches, in which the memory accesses of many operations overlap (`pipeline.rs`).

use alluvium_base::KeyHash;

use crate::access::{Access, SharedWrites};
use crate::error::TooLarge;
use crate::item::{ItemView, Metadata, room};
use crate::partition::{Ahead, Partition};
use crate::pipeline;

use super::handle::Cache;

/// Longer batches than this are hardly faster.
pub const BATCH_LEN: usize = 32;

/// What the stages before the last determined about a key.
#[derive(Clone, Copy, Default)]
struct Sought {
    hash: KeyHash,
    /// Ways of its bucket in the index whose tags equal the key's.
    ways: u32,
    /// Whether its item is not inline and has yet to be looked up in the logs.
    may_be_logged: bool,
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
        let mut room = room();
        let key = |number: usize| keys[number].as_ref();
        self.in_stages(keys.len(), false, key, |number, Sought { hash, ways, .. }| {
            let partition = self.partition(hash);
            let outcome =
                self.get_hashed(partition, hash, key(number), Ahead::Loaded(ways), &mut room, |item| {
                    take(number, Some(item))
                });
            if outcome.is_none() {
                take(number, None);
            }
        });
    }

    /// Copies of the values of `keys`, in their order.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Option<Vec<u8>>> {
        let mut values = Vec::with_capacity(keys.len());
        self.get_many_with(keys, |_, item| values.push(item.map(|item| item.value.to_vec())));
        values
    }

    /// Sets each key to its value, in order; `own` returns the partition of a hash if the caller may write it.
    ///
    /// # Errors
    /// The error of the last item that was refused; all others are set.
    #[inline(always)]
    pub(super) fn set_each<'p, K: AsRef<[u8]>, V: AsRef<[u8]>, E: From<TooLarge>>(
        &'p self,
        items: &[(K, V)],
        own: impl Fn(KeyHash) -> Result<&'p Partition<A>, E>,
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
                let partition = self.partition(hash);
                let body = partition.current_body();
                if are_sets {
                    partition.prefetch_ghost(hash);
                }
                match &body.inline {
                    Some(table) => table.spot(hash).bucket().prefetch(),
                    None => body.index.prefetch(body.index.place(hash)),
                }
                Sought { hash, ways: 0, may_be_logged: true }
            },
            |Sought { hash, ways, may_be_logged }| {
                let body = self.partition(*hash).current_body();
                match &body.inline {
                    Some(table) if table.spot(*hash).prefetch_cells() => *may_be_logged = false,
                    Some(_) => body.index.prefetch(body.index.place(*hash)),
                    None => {
                        *ways = body.prefetch_items(body.index.place(*hash));
                        *may_be_logged = false;
                    }
                }
            },
            |Sought { hash, ways, may_be_logged }| {
                if *may_be_logged {
                    let body = self.partition(*hash).current_body();
                    *ways = body.prefetch_items(body.index.place(*hash));
                }
            },
            last,
        );
    }
}

impl<A: SharedWrites> Cache<A> {
    /// Sets each key to its value, in order.
    ///
    /// # Errors
    /// [`TooLarge`] for the last item that is too large; all others are set.
    pub fn set_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, items: &[(K, V)]) -> Result<(), TooLarge> {
        self.set_each(items, |hash| Ok(self.partition(hash)))
    }
}
