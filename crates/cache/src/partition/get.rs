//! Gets: the value of a key, in the way that costs least.

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::item::{Fast, Metadata, Room, Scratch, Target};

use super::Partition;
use super::cells::Ahead;
use super::lend::Lent;
use super::policy::Policy;

impl<P: Policy, A: Access> Partition<P, A> {
    /// Calls `take` with value and metadata of the item of `key`, if there is one, and returns its result.
    #[inline(always)]
    pub fn get_with<T>(
        &self,
        hash: KeyHash,
        key: &[u8],
        ahead: Ahead,
        room: &mut Room,
        take: impl FnOnce(&[u8], Metadata) -> T,
    ) -> Option<T> {
        let take = match self.lend(hash, key, ahead, take) {
            Lent::Hit(outcome) => {
                self.policy.count_read::<A>(true);
                return Some(outcome);
            }
            Lent::Absent(take) => return self.get_behind(hash, key, take),
            Lent::Refused(take) => take,
        };
        match self.fast(hash, key, ahead, room) {
            Fast::Hit(value) => {
                self.policy.count_read::<A>(true);
                Some(take(value, Metadata::default()))
            }
            Fast::Miss(()) => self.get_behind(hash, key, take),
            Fast::Retry => match self.get_slowly(hash, key, ahead.ways(), take) {
                Ok(outcome) => {
                    self.policy.count_read::<A>(true);
                    Some(outcome)
                }
                Err(take) => self.get_behind(hash, key, take),
            },
        }
    }

    /// The rest of a get of a key that cells and region do not have.
    #[inline(always)]
    fn get_behind<T>(&self, hash: KeyHash, key: &[u8], take: impl FnOnce(&[u8], Metadata) -> T) -> Option<T> {
        let outcome = P::read_behind(self, hash, key, take);
        self.policy.count_read::<A>(outcome.is_some());
        outcome
    }

    /// A get from cells and region for which the fast path does not suffice; not counted. `Err(take)` if they have no
    /// item.
    #[inline(never)]
    pub fn get_slowly<T, F: FnOnce(&[u8], Metadata) -> T>(
        &self,
        hash: KeyHash,
        key: &[u8],
        ways: u32,
        take: F,
    ) -> Result<T, F> {
        let mut scratch = Scratch::new();
        let metadata = self.read(hash, key, ways, |value, metadata| {
            scratch.fill(value.len, |copy| value.copy_out(copy));
            metadata
        });
        match metadata {
            Some(metadata) => Ok(scratch.lend(|value| take(value, metadata))),
            None => Err(take),
        }
    }

    /// Whether `key` has an item. Counts as an access of it, but not as a hit or miss.
    pub fn contains(&self, hash: KeyHash, key: &[u8]) -> bool {
        self.read(hash, key, 0, |_, _| ()).is_some() || P::is_behind(self, hash, key)
    }

    /// Replaces the contents of `value` by the value of `key`, and returns the value's first byte in the memory of
    /// cells or region, or 0. If there is no item, the contents of `value` are unspecified.
    #[inline(always)]
    pub fn get_into(&self, hash: KeyHash, key: &[u8], value: &mut Vec<u8>) -> Option<usize> {
        let found = match self.fast(hash, key, Ahead::Nothing, &mut *value) {
            Fast::Hit(start) => Some(start),
            Fast::Miss(()) => None,
            Fast::Retry => self.get_slowly_into(hash, key, value),
        };
        let found = found.or_else(|| {
            P::read_behind(self, hash, key, |behind, _| {
                value.clear();
                value.extend_from_slice(behind);
                0
            })
        });
        self.policy.count_read::<A>(found.is_some());
        found
    }

    #[inline(never)]
    fn get_slowly_into(&self, hash: KeyHash, key: &[u8], value: &mut Vec<u8>) -> Option<usize> {
        self.read(hash, key, 0, |stored, _| value.copy(stored)).flatten()
    }
}
