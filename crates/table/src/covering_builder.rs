//! [`CoveringBuilder`]: builds the filter of a table and of those that it covers while the items arrive.

use std::sync::Arc;

use alluvium_base::{HashRange, KeyHash, KeyHasher, TableId};
use alluvium_index::cuckoo::Full;
use alluvium_index::multi_level_filter::{Known, MultiLevelFilter, MultiLevelFilterBuilder, RUNS_MAX};

use crate::covering_filter::Known as KnownCover;
use crate::error::Result;
use crate::index::SectionIndex;
use crate::key_probe::KeyProbe;
use crate::scanner::SectionScanner;
use crate::section::Section;
use crate::section_range::SectionRange;

/// Number of attempts to build a filter, each in a larger table, if its keys do not fit.
const TRIES_MAX: usize = 8;
/// Bytes of one read of a covered table.
const READ_BYTES: usize = 128 << 10;

/// What the filter of a new table consists of.
#[derive(Clone, Debug, Default)]
pub struct CoveringSpec {
    /// Bits of a fingerprint, 4 to 12.
    pub fingerprint_bits: u32,
    /// The tables that it takes over, young to old, directly below the new table wherever it will be placed; at most
    /// seven. The filter of the first is a covering filter that answers for all of them, and perhaps for older ones
    /// that no longer exist.
    pub below: Vec<Arc<Section>>,
}

/// Gathers hashes, looks up in the tables below the keys that the filter there names, and makes the filter of a
/// section.
///
/// SlimDB's Algorithm 2 must know, for a key whose fingerprint is present, whether the key itself is; it learns this
/// from the read that precedes a non-blind write. Here the merge that writes the table looks up each such key once, so
/// it makes no difference whether writes were blind
/// (`docs/decisions/0022-the-merge-asks-for-keys-that-seem-to-be-there.md`).
#[derive(Debug)]
pub(super) struct CoveringBuilder {
    spec: CoveringSpec,
    range: HashRange,
    hashes: Vec<KeyHash>,
    /// What is known of each hash.
    known: Vec<Known>,
    /// Hashes that several keys share, by the bits that place them, in any order.
    shared: Vec<KeyHash>,
    /// The filter below with all that it covers, or `None` if it covers nothing.
    below: Option<Below>,
}

#[derive(Debug)]
struct Below {
    index: Arc<SectionIndex>,
    /// One for each covered table, young to old.
    probes: Vec<KeyProbe>,
}

/// The result of [`CoveringBuilder::finish`].
#[derive(Debug)]
pub(super) struct MadeCovering {
    pub known: KnownCover,
    pub filter: MultiLevelFilter,
}

impl CoveringBuilder {
    pub fn new(spec: CoveringSpec, range: HashRange, items_expected: u64) -> Self {
        debug_assert!(spec.below.len() < RUNS_MAX as usize);
        let hashes = Vec::with_capacity(items_expected as usize);
        Self { spec, range, hashes, known: Vec::new(), shared: Vec::new(), below: None }
    }

    /// Bits of a fingerprint.
    pub fn fingerprint_bits(&self) -> u8 {
        self.spec.fingerprint_bits as u8
    }

    /// Adds an item. Hashes ascend. Reads the page below that may hold the key, if any: for one in five hundred new
    /// keys.
    pub fn push(&mut self, hasher: KeyHasher, hash: KeyHash, key: &[u8]) -> Result<()> {
        let known = self.known_of(hasher, hash, key)?;
        if self.hashes.last() == Some(&hash) {
            // Several keys have this hash: it is enough that one of them is present below.
            if known == Known::Present
                && let Some(last) = self.known.last_mut()
            {
                *last = known;
            }
            return Ok(());
        }
        self.hashes.push(hash);
        self.known.push(known);
        Ok(())
    }

    fn known_of(&mut self, hasher: KeyHasher, hash: KeyHash, key: &[u8]) -> Result<Known> {
        if self.spec.below.is_empty() {
            return Ok(Known::Absent);
        }
        let below = match &mut self.below {
            Some(below) => below,
            None => {
                let index = self.spec.below[0].whole_index()?;
                let probes = self.spec.below.iter().cloned().map(KeyProbe::new).collect();
                self.below.insert(Below { index, probes })
            }
        };
        let placed = hasher.placing(hash);
        let Some(runs) = below.index.covering().and_then(|filter| filter.runs_of(placed)) else {
            return Ok(Known::Absent);
        };
        let oldest = below.index.covers().map_or(0, <[TableId]>::len);
        let (mut same, mut other) = (false, false);
        for run in runs.young_to_old() {
            // The filter still knows tables that no longer exist.
            let depth = oldest.checked_sub(run as usize);
            let Some(probe) = depth.and_then(|depth| below.probes.get_mut(depth)) else { continue };
            let seen = probe.look(hash, key)?;
            (same, other) = (same || seen.same_key, other || seen.other_key);
        }
        if other {
            self.shared.push(placed);
        }
        Ok(if same || other { Known::Present } else { Known::Absent })
    }

    /// Combines the filter below with the new hashes. Returns `None` for hashes so alike that no table takes them: then
    /// the section has no filter, and no table is covered.
    ///
    /// The filter below is extended if it has room. Otherwise the tables below are read once more for their hashes.
    /// From three runs on, room is left for one more run, so that this happens only for every other table: 1.6 reads of
    /// each item up to the eighth run, with filters a twelfth larger than necessary on average.
    pub fn finish(mut self, hasher: KeyHasher) -> Result<Option<MadeCovering>> {
        let covers: Vec<TableId> = self.spec.below.iter().map(|section| section.file_number()).collect();
        let index = match self.spec.below.first() {
            Some(head) => Some(head.whole_index()?),
            None => None,
        };
        let head = index.as_deref().and_then(SectionIndex::covering);
        let mut shared = std::mem::take(&mut self.shared);
        shared.extend(head.into_iter().flat_map(|head| &head.known().shared));
        shared.sort_unstable();
        shared.dedup();
        let known = KnownCover { covers, shared };
        let below = head.and_then(|head| head.filter());
        let covers_all = head.is_some_and(|head| head.runs() == u32::from(self.run()));
        let whole = below.filter(|_| covers_all);
        if let Some(filter) = whole.and_then(|filter| self.reopened(hasher, filter)) {
            return Ok(Some(MadeCovering { known, filter }));
        }
        let expected = self.keys_expected(below.map(MultiLevelFilter::len));
        for attempt in 0..TRIES_MAX {
            let keys = expected + attempt * (expected / 16 + 1);
            if let Ok(filter) = self.made_anew(hasher, keys)? {
                return Ok(Some(MadeCovering { known, filter }));
            }
        }
        Ok(None)
    }

    fn run(&self) -> u8 {
        self.spec.below.len() as u8
    }

    /// The filter below with the new hashes added, or `None` if it covers a different range or has no room for them.
    fn reopened(&self, hasher: KeyHasher, filter: &MultiLevelFilter) -> Option<MultiLevelFilter> {
        let is_same = self.spec.below.first().is_some_and(|head| head.range() == self.range)
            && filter.fingerprint_bits() == self.spec.fingerprint_bits;
        let new = self.known.iter().filter(|&&known| known == Known::Absent).count();
        if !is_same || filter.len() + new > filter.keys_max() {
            return None;
        }
        let mut builder = MultiLevelFilterBuilder::reopen(filter);
        for (&hash, &known) in self.hashes.iter().zip(&self.known) {
            builder.insert(hasher.placing(hash), self.run(), known).ok()?;
        }
        Some(builder.finish())
    }

    /// Number of keys for which a new filter has room: the present ones, and those of one more run.
    fn keys_expected(&self, below: Option<usize>) -> usize {
        let new = self.known.iter().filter(|&&known| known == Known::Absent).count();
        let items = |section: &Arc<Section>| section.item_count() as f64 * section.share_within(self.range);
        let items = self.spec.below.iter().map(items).sum::<f64>().ceil() as usize;
        let keys = new.max(1) + below.map_or(items, |len| len.min(items));
        let runs = usize::from(self.run()) + 1;
        if runs > 2 && runs % 2 == 1 { keys + keys / runs } else { keys }
    }

    /// The filter of all hashes in the tables below and in this one; each hash names its youngest table. Returns
    /// [`Full`] if the filter has not enough room.
    fn made_anew(
        &self,
        hasher: KeyHasher,
        keys: usize,
    ) -> Result<std::result::Result<MultiLevelFilter, Full>> {
        let mut builder = MultiLevelFilterBuilder::new(keys, self.spec.fingerprint_bits);
        let mut streams = Vec::with_capacity(self.spec.below.len());
        for (run, section) in (0..self.run()).zip(self.spec.below.iter().rev()) {
            let Some(range) = SectionRange::of(section, self.range) else { continue };
            streams.push(OldHashes::open(&range, run)?);
        }
        let mut new = self.hashes.iter().copied().peekable();
        loop {
            let oldest = streams.iter().filter_map(|stream| stream.front).min();
            let hash = match (new.peek(), oldest) {
                (Some(&hash), Some(old)) => hash.min(old),
                (Some(&hash), None) | (None, Some(hash)) => hash,
                (None, None) => return Ok(Ok(builder.finish())),
            };
            // Streams are ordered old to young.
            let mut run = None;
            for stream in &mut streams {
                if stream.front == Some(hash) {
                    run = Some(stream.run);
                    stream.advance()?;
                }
            }
            if new.next_if_eq(&hash).is_some() {
                run = Some(self.run());
            }
            let run = run.unwrap_or_default();
            if let Err(full) = builder.insert(hasher.placing(hash), run, Known::Absent) {
                return Ok(Err(full));
            }
        }
    }
}

/// The hashes of a covered table, each once.
struct OldHashes {
    scanner: SectionScanner,
    run: u8,
    front: Option<KeyHash>,
}

impl OldHashes {
    fn open(range: &SectionRange, run: u8) -> Result<Self> {
        let mut stream = Self { scanner: range.scanner(READ_BYTES)?, run, front: None };
        stream.advance()?;
        Ok(stream)
    }

    fn advance(&mut self) -> Result<()> {
        let before = self.front;
        while self.scanner.advance()? {
            self.front = self.scanner.current_encoded().map(|(hash, _)| hash);
            if self.front != before {
                return Ok(());
            }
        }
        self.front = None;
        Ok(())
    }
}
