//! The right to write partitions that any thread reads. Each partition has at most one writer.

use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use alluvium_base::KeyHash;

use crate::access::ConcurrentReads;
use crate::error::{ClaimError, OtherPartition};
use crate::index::partition_of;
use crate::partition::{Partition, Policy};

/// The right to write a range of partitions, which is never empty. Returned when dropped.
#[derive(Debug)]
pub(crate) struct Claim<P: Policy> {
    all: Arc<[Partition<P, ConcurrentReads>]>,
    range: Range<usize>,
}

impl<P: Policy> Claim<P> {
    /// Takes the right to write the partitions of `wanted`, all or none.
    ///
    /// # Errors
    /// [`ClaimError`]: there are no such partitions, or one of them has a writer.
    pub fn new(
        all: &Arc<[Partition<P, ConcurrentReads>]>,
        wanted: impl RangeBounds<usize>,
    ) -> Result<Self, ClaimError> {
        let start = match wanted.start_bound() {
            Bound::Included(&start) => Some(start),
            Bound::Excluded(&before) => before.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let end = match wanted.end_bound() {
            Bound::Included(&last) => last.checked_add(1),
            Bound::Excluded(&end) => Some(end),
            Bound::Unbounded => Some(all.len()),
        };
        let range = start.zip(end).map(|(start, end)| start..end);
        let range = range.filter(|range| !range.is_empty() && range.end <= all.len());
        let range = range.ok_or(ClaimError::NoSuchPartition { partitions: all.len() })?;
        // Grows with what was claimed, so that an error returns it.
        let mut claim = Self { all: Arc::clone(all), range: range.start..range.start };
        for partition in range {
            if !all[partition].gate().claim() {
                return Err(ClaimError::Taken { partition });
            }
            claim.range.end += 1;
        }
        Ok(claim)
    }

    /// Numbers of the partitions.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The partitions.
    pub fn partitions(&self) -> &[Partition<P, ConcurrentReads>] {
        &self.all[self.range()]
    }

    /// The partition of `hash`, if it belongs to this writer.
    #[inline(always)]
    pub fn own(&self, hash: KeyHash) -> Result<&Partition<P, ConcurrentReads>, OtherPartition> {
        match &*self.all {
            // The range is never empty.
            [only] => Ok(only),
            several => {
                let partition = partition_of(hash, several.len());
                let own = self.range.contains(&partition).then(|| several.get(partition)).flatten();
                own.ok_or(OtherPartition { partition })
            }
        }
    }
}

impl<P: Policy> Drop for Claim<P> {
    fn drop(&mut self) {
        self.partitions().iter().for_each(|partition| partition.gate().release());
    }
}
