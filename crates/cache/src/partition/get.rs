//! Gets: the value of a key, in the way that costs least.

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::item::{Fast, Metadata, Room, Scratch, Target};

use super::Partition;
use super::cells::Ahead;
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
        let count = |is_hit| self.policy.count_read::<A>(is_hit);
        let take = match self.lend(hash, key, ahead, take) {
            Ok(outcome) => {
                count(outcome.is_some());
                return outcome;
            }
            Err(take) => take,
        };
        match self.fast(hash, key, ahead, room) {
            Fast::Hit(value) => {
                count(true);
                Some(take(value, Metadata::default()))
            }
            Fast::Miss(()) => {
                count(false);
                None
            }
            Fast::Retry => {
                let outcome = self.get_slowly(hash, key, ahead.ways(), take);
                count(outcome.is_some());
                outcome
            }
        }
    }

    /// A get for which the fast path does not suffice; not counted.
    #[inline(never)]
    fn get_slowly<T>(
        &self,
        hash: KeyHash,
        key: &[u8],
        ways: u32,
        take: impl FnOnce(&[u8], Metadata) -> T,
    ) -> Option<T> {
        let mut scratch = Scratch::new();
        let metadata = self.read(hash, key, ways, |value, metadata| {
            scratch.fill(value.len, |copy| value.copy_out(copy));
            metadata
        })?;
        Some(scratch.lend(|value| take(value, metadata)))
    }

    /// Replaces the contents of `value` by the value of `key`, and returns the value's first byte in its memory. If
    /// there is no item, the contents of `value` are unspecified.
    #[inline(always)]
    pub fn get_into(&self, hash: KeyHash, key: &[u8], value: &mut Vec<u8>) -> Option<usize> {
        let found = match self.fast(hash, key, Ahead::Nothing, &mut *value) {
            Fast::Hit(start) => Some(start),
            Fast::Miss(()) => None,
            Fast::Retry => self.get_slowly_into(hash, key, value),
        };
        self.policy.count_read::<A>(found.is_some());
        found
    }

    #[inline(never)]
    fn get_slowly_into(&self, hash: KeyHash, key: &[u8], value: &mut Vec<u8>) -> Option<usize> {
        self.read(hash, key, 0, |stored, _| value.copy(stored)).flatten()
    }
}
