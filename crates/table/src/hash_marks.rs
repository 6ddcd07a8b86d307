//! [`HashMarks`]: the distribution of the items of a section over its range, if they are not uniform.
//!
//! Hashes of a hashed keyspace are uniform. In a semi-sorted one a single prefix may have most of the items. Sixteen
//! hashes, known without a read, therefore tell how much of a section is in a part of its range: merges use them to cut
//! tables, and to estimate which part of a table above several containers counts.

use alluvium_base::HashRange;

use crate::frame::u64_at;

/// Number of approximately equal parts of the items.
const PARTS: usize = 16;
/// Bytes of encoded marks.
pub(crate) const MARKS_BYTES: usize = PARTS * 16;
/// Maximum number of hashes held while a section is written; a power of two.
const KEPT_MAX: usize = 128;

/// The last hash of each sixteenth of a section's items, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HashMarks(Option<Box<[u128; PARTS]>>);

impl From<[u128; PARTS]> for HashMarks {
    /// Sections of hashed keyspaces have no marks, and use no memory for them.
    fn from(hashes: [u128; PARTS]) -> Self {
        Self((hashes != [0; PARTS]).then(|| Box::new(hashes)))
    }
}

impl HashMarks {
    /// The marks of a section without items.
    pub const NONE: Self = Self(None);

    /// The share of the items that is in the range, for a section whose own range begins at `lowest`. Exact at the
    /// marks, and interpolated between them as if hashes were uniform there.
    pub fn share_within(&self, range: HashRange, lowest: u128) -> f64 {
        let below = range.low.checked_sub(1).map_or(0.0, |below| self.share_up_to(below, lowest));
        (self.share_up_to(range.high, lowest) - below).max(0.0)
    }

    fn share_up_to(&self, hash: u128, lowest: u128) -> f64 {
        let hashes = self.hashes();
        let whole = hashes.partition_point(|&mark| mark <= hash);
        let Some(&next) = hashes.get(whole) else { return 1.0 };
        let start = if whole == 0 { lowest } else { hashes[whole - 1] };
        let into = hash.saturating_sub(start) as f64 / (next - start.min(next)).max(1) as f64;
        (whole as f64 + into.min(1.0)) / PARTS as f64
    }

    /// The marks.
    pub fn hashes(&self) -> &[u128] {
        self.0.as_deref().unwrap_or(&[0; PARTS])
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        self.hashes().iter().for_each(|hash| out.extend_from_slice(&hash.to_le_bytes()));
    }

    /// Returns `None` if they do not ascend.
    pub(super) fn decode(bytes: &[u8; MARKS_BYTES]) -> Option<Self> {
        let hash = |part: usize| {
            u128::from(u64_at(bytes, part * 16)) | u128::from(u64_at(bytes, part * 16 + 8)) << 64
        };
        let hashes: [u128; PARTS] = std::array::from_fn(hash);
        hashes.is_sorted().then(|| hashes.into())
    }
}

/// Collects a section's hashes as they are written.
#[derive(Debug)]
pub(super) struct HashMarksBuilder {
    /// Every `step`-th hash, starting with the first.
    kept: Vec<u128>,
    step: u64,
    count: u64,
    last: u128,
}

impl Default for HashMarksBuilder {
    fn default() -> Self {
        Self { kept: Vec::new(), step: 1, count: 0, last: 0 }
    }
}

impl HashMarksBuilder {
    /// Adds an item. Hashes ascend.
    #[inline]
    pub fn push(&mut self, hash: u128) {
        if self.count.is_multiple_of(self.step) {
            self.keep(hash);
        }
        self.count += 1;
        self.last = hash;
    }

    fn keep(&mut self, hash: u128) {
        if self.kept.len() == KEPT_MAX {
            // The step doubles, so that the hashes kept stay evenly spread; the current hash is at an even position.
            let mut place = 0;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.step *= 2;
        }
        self.kept.push(hash);
    }

    /// The marks of the items added.
    pub fn finish(&self) -> HashMarks {
        let Some(last) = self.kept.len().checked_sub(1) else { return HashMarks::NONE };
        let mut hashes =
            std::array::from_fn(|part| self.kept[((part + 1) * self.kept.len() / PARTS).min(last)]);
        hashes[PARTS - 1] = self.last;
        hashes.into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Skewed hashes: many neighbours at a few positions. Compares with a count.
        #[test]
        fn shares_are_right_to_an_eighth(
            groups in prop::collection::vec((any::<u64>(), 1usize..400), 1..6),
            ends: (u128, u128),
        ) {
            let mut hashes: Vec<u128> = groups
                .iter()
                .flat_map(|&(prefix, len)| (0..len as u128).map(move |n| u128::from(prefix) << 64 | n << 50))
                .collect();
            hashes.sort_unstable();
            let mut builder = HashMarksBuilder::default();
            hashes.iter().for_each(|&hash| builder.push(hash));
            let marks = builder.finish();
            let mut bytes = Vec::new();
            marks.encode(&mut bytes);
            prop_assert_eq!(HashMarks::decode(bytes.first_chunk().unwrap()), Some(marks.clone()));
            prop_assert_eq!(marks.hashes()[PARTS - 1], hashes[hashes.len() - 1]);
            let range = HashRange::new(ends.0.min(ends.1), ends.0.max(ends.1));
            let exact = hashes.iter().filter(|&&hash| range.contains(hash)).count();
            let exact = exact as f64 / hashes.len() as f64;
            let slack = 2.0 / PARTS as f64 + 2.0 / hashes.len() as f64;
            prop_assert!((marks.share_within(range, 0) - exact).abs() <= slack);
            prop_assert!((marks.share_within(HashRange::ALL, 0) - 1.0).abs() < 1e-9);
        }
    }
}
