//! An index that grows with the items, as that of a cache does (`partition/grow.rs`).

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::index::bucket::Bucket;
use crate::item::Header;
use crate::memory::UNIT_BYTES;

use super::chains::Chains;
use super::partition::Partition;

/// Minimum bytes of an index, if a larger one is allowed. Under the model checker so few that most tests need no
/// growth.
const INDEX_BYTES_MIN: usize = if cfg!(loom) { 8 * size_of::<Bucket>() } else { 64 << 10 };

/// Binary logarithm of the factor by which the index grows.
const GROWTH_BITS: u32 = 2;

/// How many chains ahead items are prefetched.
const CHAINS_AHEAD: usize = 2;

/// The initial number of first buckets of an index that may grow to `all`.
pub(super) fn first_buckets(all: usize) -> usize {
    let mut buckets = all;
    while (buckets >> GROWTH_BITS) * size_of::<Bucket>() >= INDEX_BYTES_MIN {
        buckets >>= GROWTH_BITS;
    }
    buckets
}

impl<A: Access> Partition<A> {
    /// Writer: the index, enlarged if it has no room for an item with this hash and may grow.
    #[inline(always)]
    pub(super) fn grow_for<'a>(&'a self, chains: &'a Chains, hash: KeyHash) -> &'a Chains {
        if chains.first_buckets() == self.buckets_max { chains } else { self.grow_if_full(chains, hash) }
    }

    #[inline(never)]
    fn grow_if_full<'a>(&'a self, mut chains: &'a Chains, hash: KeyHash) -> &'a Chains {
        while chains.first_buckets() < self.buckets_max && chains.is_full_at(chains.place(hash)) {
            // Without memory for a larger index, the present one refuses items.
            let Some(larger) = self.grown(chains) else { break };
            let before = self.chains.replace(larger);
            before.release();
            chains = self.chains.get();
        }
        chains
    }

    /// A larger index of the same items. Takes some 25 ns per item.
    fn grown(&self, chains: &Chains) -> Option<Chains> {
        // Earlier sizes are the final one shifted right, so the next size is the final one shifted by less.
        let mut buckets = self.buckets_max;
        while buckets >> GROWTH_BITS > chains.first_buckets() {
            buckets >>= GROWTH_BITS;
        }
        let larger = Chains::new(buckets).ok()?;
        for chain in 0..chains.first_buckets() {
            if chain + CHAINS_AHEAD < chains.first_buckets() {
                for entry in chains.entries(chain + CHAINS_AHEAD) {
                    self.space.ring().prefetch(entry.position().0 as usize, 2 * UNIT_BYTES);
                }
            }
            for entry in chains.entries(chain) {
                let unit = entry.position().0 as usize;
                let header = Header(self.space.load(unit as u32));
                let place = larger.place(self.hash_at(unit, header));
                larger.set_entry(larger.empty_slot(place)?, entry);
            }
        }
        Some(larger)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::store::Store;

    /// As many items as there is room for: the index grows several times on the way, and no item is lost.
    #[test]
    fn an_index_grows_with_its_items_and_loses_none() {
        let items = if cfg!(miri) { 5000 } else { 300_000_u32 };
        let store = Store::builder().payload_bytes_mean(8).room_for(items as usize).build().unwrap();
        for number in 0..items {
            assert_eq!(store.set(&number.to_le_bytes(), &number.to_be_bytes()), Ok(()), "{number}");
        }
        for number in 0..items {
            assert_eq!(store.get(&number.to_le_bytes()), Some(number.to_be_bytes().to_vec()));
        }
        let mut visited = 0;
        store.for_each(|_, _| visited += 1);
        assert_eq!((visited, store.stats().items), (items, u64::from(items)));
        assert!((0..items).all(|number| store.remove(&number.to_le_bytes())));
        let stats = store.stats();
        assert_eq!((stats.items, stats.space_bytes_used, stats.spare_buckets_used), (0, 0, 0));
    }
}
