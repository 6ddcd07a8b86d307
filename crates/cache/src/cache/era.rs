//! Eras: copies of data that changes elsewhere.

use crate::access::SharedWrites;
use crate::canary::{Canary, is_broken};
use crate::error::TooLarge;
use crate::item::ItemView;
use crate::sync::Ordering;

use super::handle::{Cache, SetOptions};
use super::keyed::KeyedWrites;
use super::update::Outcome;

/// The time between two changes of the data of which a cache holds copies. See [`Cache::era`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Era(u64);

impl<A: SharedWrites> Cache<A> {
    /// The current era. A thread that copies data into the cache takes it before it reads the data, and sets the copy
    /// with [`Cache::set_in_era`]. A thread that changes the data
    ///
    /// 1. makes the new data visible to readers who start from now on,
    /// 2. begins an era ([`Cache::begin_era`]),
    /// 3. sets or removes the items concerned.
    ///
    /// From then on, no get returns older data: a copy of older data was either set before step 2, and is replaced in
    /// step 3, or it is refused.
    #[inline]
    pub fn era(&self) -> Era {
        Era(self.era.load(Ordering::Acquire))
    }

    /// Begins an era: after the return, no copy of an earlier era is set. Waits for writes in progress.
    pub fn begin_era(&self) {
        self.era.fetch_add(1, Ordering::AcqRel);
        if is_broken(Canary::EraUnawaited) {
            return;
        }
        // A writer that compared eras before the change does so under the lock of a partition.
        self.partitions.all.iter().for_each(|partition| drop(partition.enter()));
    }

    /// Sets `key` unless the era has ended; returns whether it did.
    ///
    /// # Errors
    /// [`TooLarge`]; the key keeps its former item.
    pub fn set_in_era(
        &self,
        era: Era,
        key: &[u8],
        value: &[u8],
        options: SetOptions,
    ) -> Result<bool, TooLarge> {
        // Judged under the partition's lock, which `begin_era` takes after it has changed the era.
        let is_current = |_: Option<ItemView<'_>>| match self.era() == era {
            true => Outcome::Done,
            false => Outcome::Differs,
        };
        Ok(self.keyed(key).set_if(value, options, is_current)? == Outcome::Done)
    }
}
