//! Which partitions have a writer: each has at most one.

use std::fmt;
use std::ops::{Bound, Range, RangeBounds};

use crate::access::Owner;
use crate::error::ClaimError;

/// Something with a right to write that is granted once at a time.
pub(crate) trait Claimed: fmt::Debug {
    /// The gate that grants it.
    fn owner(&self) -> &Owner;
}

/// Takes the right to write the partitions of `wanted`, all or none.
///
/// # Errors
/// [`ClaimError`]: there are no such partitions, or one of them has a writer.
pub(crate) fn claim(
    partitions: &[impl Claimed],
    wanted: impl RangeBounds<usize>,
) -> Result<Range<usize>, ClaimError> {
    let start = match wanted.start_bound() {
        Bound::Included(&start) => Some(start),
        Bound::Excluded(&before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match wanted.end_bound() {
        Bound::Included(&last) => last.checked_add(1),
        Bound::Excluded(&end) => Some(end),
        Bound::Unbounded => Some(partitions.len()),
    };
    let range = start.zip(end).map(|(start, end)| start..end);
    let range = range.filter(|range| !range.is_empty() && range.end <= partitions.len());
    let range = range.ok_or(ClaimError::NoSuchPartition { partitions: partitions.len() })?;
    for partition in range.clone() {
        if !partitions[partition].owner().claim() {
            release(partitions, range.start..partition);
            return Err(ClaimError::Taken { partition });
        }
    }
    Ok(range)
}

/// Returns the rights to write these partitions.
pub(crate) fn release(partitions: &[impl Claimed], range: Range<usize>) {
    partitions[range].iter().for_each(|partition| partition.owner().release());
}
