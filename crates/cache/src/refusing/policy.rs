//! The policy's state, and its answers to the questions of a partition.

use std::fmt;
use std::io;

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::index::{ChainedIndex, Entry, Index, Slot, Versioned};
use crate::item::Header;
use crate::partition::{Body, Common, Found, Partition, Policy};
use crate::region::{Position, Space};
use crate::sync::{AtomicU32, Ordering};

use super::sizes::Sizes;

/// Why a store refuses an item. Nothing was changed; removing items helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfSpace {
    /// No free block is large enough for the item, or the item exceeds the maximum size.
    Item,
    /// The key's chain in the index is full and there are no spare buckets: there are more items than the mean size
    /// given to the builder allowed for.
    Index,
}

impl fmt::Display for OutOfSpace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Item => write!(out, "the store has no free space large enough for the item"),
            Self::Index => write!(out, "the store's index has no room for another item"),
        }
    }
}

impl std::error::Error for OutOfSpace {}

/// See the module.
#[derive(Debug)]
pub(crate) struct Refusing {
    /// Whether items keep their position until their key is set or removed.
    pub keeps_places: bool,
    /// Whether a change ended by a panic, in which case some chain's version stays odd.
    is_broken: AtomicU32,
}

impl<A: Access> Partition<Refusing, A> {
    /// An empty partition.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn refusing(common: Common, sizes: Sizes, keeps_places: bool) -> io::Result<Self> {
        let policy = Refusing { keeps_places, is_broken: AtomicU32::new(0) };
        let body = Body::new(&policy, Space::new(sizes.space)?, sizes.tables, 0)?;
        Ok(Self::new(common, policy, body))
    }
}

impl Policy for Refusing {
    type Index = ChainedIndex;
    type Region = Space;
    type Refusal = OutOfSpace;

    const HAS_CELLS: bool = false;
    const LENDS: bool = false;
    const REFUSES_BROKEN: bool = true;

    fn counted_max(&self) -> u32 {
        0
    }

    #[inline(always)]
    fn only_counts(&self) -> bool {
        true
    }

    fn too_large(_body: &Body<Self>) -> OutOfSpace {
        OutOfSpace::Item
    }

    fn admit<A: Access>(
        partition: &Partition<Self, A>,
        body: &Body<Self>,
        hash: KeyHash,
        header: Header,
        _before: Option<&Found<'_>>,
    ) -> Result<(Entry, Header), OutOfSpace> {
        let words = header.words() as u32;
        let block = body.region.allocate(words).or_else(|| partition.gather(body, words));
        let (start, taken) = block.ok_or(OutOfSpace::Item)?;
        let entry = Entry::new(body.index.place(hash).tag, 0, Position(u64::from(start)));
        Ok((entry, header.grown_to(taken as usize)))
    }

    fn make_way<A: Access>(
        _partition: &Partition<Self, A>,
        _body: &Body<Self>,
        _chain: usize,
    ) -> Result<Slot, OutOfSpace> {
        Err(OutOfSpace::Index)
    }

    fn abandon<A: Access, B: Versioned>(partition: &Partition<Self, A>, _bucket: &B) {
        partition.policy.is_broken.store(1, Ordering::Relaxed);
    }

    #[cold]
    fn refuse_if_broken(&self) {
        let is_broken = self.is_broken.load(Ordering::Relaxed) != 0;
        assert!(!is_broken, "a part of the store is unusable since a write to it panicked");
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::access::{Concurrent, Exclusive};
    use crate::item::Metadata;
    use crate::partition::Ahead;

    const MEMORY_BYTES: usize = if cfg!(miri) { 1 << 17 } else { 1 << 20 };
    const KEYS: u64 = if cfg!(miri) { 60 } else { 1000 };

    /// A change never calls code of the user. If one panics nevertheless, its chain is refused: readers do not wait
    /// forever, and never see half of an item.
    fn a_broken_chain_is_refused<A: Access>() {
        let sizes = Sizes::of::<A>(MEMORY_BYTES, 24).unwrap();
        let partition = Partition::<Refusing, A>::refusing(Common::default(), sizes, false).unwrap();
        let hash = |number: u64| partition.common.hasher.hash(&number.to_le_bytes());
        let get = |number: u64| {
            let mut value = Vec::new();
            let get = || partition.get_into(hash(number), &number.to_le_bytes(), &mut value).is_some();
            catch_unwind(AssertUnwindSafe(get))
        };
        let set = |number: u64| {
            let key = number.to_le_bytes();
            let set =
                || partition.set(hash(number), &key, Ahead::Nothing, b"value", Metadata::default()).is_ok();
            catch_unwind(AssertUnwindSafe(set))
        };
        (0..KEYS).for_each(|number| assert!(set(number).unwrap()));
        let index = &partition.body.get().index;
        let change = || partition.change(index.first(index.place(hash(7))), || panic!("in the middle"));
        assert!(catch_unwind(AssertUnwindSafe(change)).is_err());
        assert!(get(7).is_err() && set(7).is_err());
        let refused = (0..KEYS).filter(|&number| get(number).is_err()).count();
        assert!((1..40).contains(&refused), "{refused} keys of the chain");
        assert_eq!((0..KEYS).filter(|&number| set(number).is_err()).count(), refused);
    }

    #[test]
    fn a_panic_within_a_change_makes_its_chain_unusable_but_stops_nobody() {
        a_broken_chain_is_refused::<Concurrent>();
        a_broken_chain_is_refused::<Exclusive>();
    }
}
