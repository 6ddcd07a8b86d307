//! [`Secondary`]: whole hashes, with their runs, of the keys whose fingerprints were taken.

use alluvium_base::KeyHash;

/// Average number of entries of a group: a lookup reads where the group begins, and then two cache lines.
const GROUP_LEN: usize = 8;

/// Hash to run, sorted by the low half, then the high half. The high halves of one filter share leading bits, but the
/// low halves are uniform, so equal ranges of them are groups of nearly equal size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Secondary {
    hashes: Box<[KeyHash]>,
    runs: Box<[u8]>,
    /// Where each group begins, and where the last one ends.
    starts: Box<[u32]>,
}

impl Secondary {
    /// From these entries, with each hash once.
    pub fn new(mut entries: Vec<(KeyHash, u8)>) -> Self {
        entries.sort_unstable_by_key(|(hash, _)| order(*hash));
        let groups = entries.len().div_ceil(GROUP_LEN).max(1);
        let mut starts = Vec::with_capacity(groups + 1);
        starts.push(0);
        for group in 1..=groups {
            let end = entries.partition_point(|(hash, _)| group_of(*hash, groups) < group);
            starts.push(end as u32);
        }
        Self {
            hashes: entries.iter().map(|(hash, _)| *hash).collect(),
            runs: entries.iter().map(|(_, run)| *run).collect(),
            starts: starts.into(),
        }
    }

    /// The run of the key with `hash`.
    #[inline]
    pub fn run(&self, hash: KeyHash) -> Option<u8> {
        let group = group_of(hash, self.starts.len() - 1);
        let (start, end) = (self.starts[group] as usize, self.starts[group + 1] as usize);
        let at = self.hashes[start..end].iter().position(|&other| other == hash)?;
        Some(self.runs[start + at])
    }

    /// All entries, in [`order`].
    pub fn entries(&self) -> impl Iterator<Item = (KeyHash, u8)> + '_ {
        self.hashes.iter().copied().zip(self.runs.iter().copied())
    }

    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.hashes) + size_of_val(&*self.runs) + size_of_val(&*self.starts)
    }
}

/// The sort order of entries.
#[inline(always)]
pub(super) fn order(hash: KeyHash) -> u128 {
    hash.0.rotate_left(64)
}

#[inline(always)]
fn group_of(hash: KeyHash, groups: usize) -> usize {
    ((u128::from(hash.low()) * groups as u128) >> 64) as usize
}
