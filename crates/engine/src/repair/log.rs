//! Checks the log, and turns the sound records of a damaged one into runs.
//!
//! Where the log is sound, its records count as in an opening. Otherwise every sound record is kept, even after a gap,
//! including records that an opening would leave out because they were never acknowledged as durable.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use alluvium_base::checksum::checksum64;
use alluvium_base::{BlobId, KeyHasher, KeyspaceId, SegmentId};
use alluvium_io::OpenMode;
use alluvium_model::LevelsPlan;

use super::report::ManifestRepair;
use super::rewrite::RunItems;
use super::structure::{Structure, unnamed};
use super::{Repair, has_keyspace};
use crate::blob::Reference;
use crate::error::{IoContext, Result};
use crate::item::{EncodedItem, Item};
use crate::log::identity::Identities;
use crate::log::record::Record;
use crate::log::salvage::{Piece, Pieces, proven_durable};
use crate::log::segment::BLOCK;
use crate::log::{Position, SegmentHeader, segment};
use crate::manifest::{DatabaseState, PlanSource, PlanState, RunState, read_all};
use crate::merge::YoungItems;
use crate::table::SegmentSpan;

/// Maximum number of segments before one that count as missing: the numbers come from damaged files.
const SEGMENTS_MISSING_MAX: u64 = 64;

/// A log file that contains a segment.
struct Found {
    name: String,
    seed: u64,
    /// Whether the header is undamaged.
    is_sound: bool,
}

/// The log as a repair finds it.
pub(super) struct LogSurvey {
    segments: BTreeMap<SegmentId, Found>,
    /// The position up to which marks prove that the log was durable.
    proven: Position,
    /// Bytes of unfinished blob files that are known to be durable.
    pub blobs: BTreeMap<BlobId, u64>,
}

impl LogSurvey {
    /// The position up to which the segment was durable; `u64::MAX` for all of it, up to the seal.
    fn required(&self, id: SegmentId, known_end: Option<u64>) -> u64 {
        match known_end {
            Some(end) => end,
            None if id < self.proven.segment => u64::MAX,
            None if id == self.proven.segment => self.proven.offset,
            None => 0,
        }
    }
}

/// Counts of a segment's records.
#[derive(Default)]
struct Scan {
    records: u64,
    gaps: u64,
    gap_bytes: u64,
}

/// The newest item of each key of a segment, by keyspace: the position of its encoding.
type Newest<'a> = BTreeMap<KeyspaceId, HashMap<&'a [u8], usize>>;

impl Repair {
    /// Finds the segments of the log, and what they prove.
    pub fn survey_log(&self, state: &DatabaseState, manifest: u64) -> Result<LogSurvey> {
        let segments = self.find_segments(state, manifest)?;
        let mut proven = Position::default();
        for (&id, segment) in segments.iter().filter(|(id, _)| !state.log_ends.contains_key(id)) {
            let bytes = self.read_segment(segment, None)?;
            let durable = proven_durable(id, segment.seed, &bytes, BLOCK as usize);
            proven = proven.max(durable.unwrap_or_default());
        }
        let mut survey = LogSurvey { segments, proven, blobs: state.durable_blobs.clone() };
        for (&id, segment) in &survey.segments {
            let known_end = state.log_ends.get(&id).copied();
            let bytes = self.read_segment(segment, known_end)?;
            for (_, start) in references(segment, &bytes, known_end) {
                let item = EncodedItem::decode(&bytes[start..]).map(|encoded| encoded.item);
                let is_durable = (start as u64) < survey.required(id, known_end);
                let Some(item) = item.filter(|_| is_durable) else { continue };
                for reference in Reference::all_of(&item) {
                    let end = survey.blobs.entry(reference.file).or_default();
                    *end = (*end).max(reference.body_end());
                }
            }
        }
        Ok(survey)
    }

    /// Checks the log that `structure` names. If the log is damaged, or the manifest was, all sound records become
    /// runs.
    pub fn check_log(
        &mut self,
        structure: &mut Structure,
        survey: &LogSurvey,
        plan: &LevelsPlan,
    ) -> Result<()> {
        let rebuilt = structure.report == ManifestRepair::Rebuilt;
        let found = &survey.segments;
        let mut damaged = self.count_missing(survey, &structure.state, rebuilt)?;
        for (&id, segment) in found {
            let known_end = structure.state.log_ends.get(&id).copied();
            let bytes = self.read_segment(segment, known_end)?;
            let required = survey.required(id, known_end);
            let scan = scan(segment, &bytes, required, |_, _| {});
            self.report.segments += 1;
            self.report.log_gaps += scan.gaps;
            self.report.items_lost_is_minimum |= scan.gaps > 0;
            self.report.log_bytes_lost += scan.gap_bytes;
            damaged |= scan.gaps > 0 || !segment.is_sound;
            damaged |= !self.segment_has_its_records(segment, &bytes, known_end, required)?;
            if !segment.is_sound {
                self.report.problem(format!("{}: the header of segment {id} is damaged", segment.name));
            }
            if scan.gaps > 0 {
                let (gaps, gap_bytes) = (scan.gaps, scan.gap_bytes);
                let name = &segment.name;
                self.report.problem(format!("{name}: records are lost in {gaps} places, {gap_bytes} bytes"));
            }
        }
        if !damaged && !rebuilt {
            return Ok(());
        }
        for (&id, segment) in found {
            let required = survey.required(id, structure.state.log_ends.get(&id).copied());
            self.convert(id, segment, required, structure, plan)?;
        }
        let state = &mut structure.state;
        let above = found.keys().next_back().map_or(SegmentId(0), |last| last.next());
        let above = above.max(state.log_ends.keys().next_back().map_or(SegmentId(0), |last| last.next()));
        state.next_segment = state.next_segment.max(above).max(state.log_start).max(SegmentId(1));
        state.log_start = state.next_segment;
        state.log_ends.clear();
        self.replaced.extend(self.log_files()?);
        Ok(())
    }

    fn log_files(&self) -> Result<Vec<String>> {
        let names = self.storage.list().context(|| "listing the database directory".to_owned())?;
        Ok(names.into_iter().filter(|name| segment::is_file_name(name)).collect())
    }

    /// All segments that count, including those with damaged headers.
    fn find_segments(&self, state: &DatabaseState, manifest: u64) -> Result<BTreeMap<SegmentId, Found>> {
        let mut found = BTreeMap::new();
        let mut headless = Vec::new();
        for name in self.log_files()? {
            let block = self.read_start(&name);
            if SegmentHeader::is_released(&block) {
                continue;
            }
            match SegmentHeader::parse(&name, &block)? {
                Some(SegmentHeader { id, seed, .. }) if id >= state.log_start => {
                    found.insert(id, Found { name, seed, is_sound: true });
                }
                Some(_) => {}
                None => headless.push(name),
            }
        }
        found.retain(|id, _| state.log_ends.get(id) != Some(&0));
        let last = [found.keys().next_back(), state.log_ends.keys().next_back()].into_iter().flatten().max();
        let newest = last.copied().unwrap_or_default().max(state.next_segment);
        let identities = Identities { seed: state.seed, manifest, log_start: state.log_start, newest };
        for name in headless {
            let bytes = read_all(&*self.storage, &name).unwrap_or_default();
            if let Some((id, seed)) = identities.find(&bytes, &found) {
                found.insert(id, Found { name, seed, is_sound: false });
            }
        }
        Ok(found)
    }

    /// The first bytes of a log file; empty if it cannot be read.
    fn read_start(&self, name: &str) -> Vec<u8> {
        let mut block = vec![0; BLOCK as usize];
        let read = self.storage.open(name, OpenMode::Read).and_then(|file| file.read_at(&mut block, 0));
        block.truncate(read.unwrap_or(0));
        block
    }

    /// Reports the segments that should exist and do not. Returns whether there are any. If the manifest is `rebuilt`,
    /// those before the oldest one that exists are taken for converted: not every one of them left a table.
    fn count_missing(&mut self, survey: &LogSurvey, state: &DatabaseState, rebuilt: bool) -> Result<bool> {
        let found = &survey.segments;
        let oldest = found.keys().next().copied().filter(|_| rebuilt).unwrap_or_default();
        let first = state.log_start.max(oldest);
        let mut expected: BTreeSet<SegmentId> =
            state.log_ends.iter().filter(|(_, end)| **end > 0).map(|(&id, _)| id).collect();
        // In an opening a segment after a missing one does not count. That is right for a segment without records,
        // which was created ahead of its use.
        for (&id, segment) in found {
            let bytes = self.read_segment(segment, state.log_ends.get(&id).copied())?;
            if starts_with_record(segment.seed, &bytes) {
                expected.extend(first.max(id.back(SEGMENTS_MISSING_MAX)).until(id));
            }
        }
        if survey.proven.segment > SegmentId(0) {
            let last = survey.proven.segment;
            expected.extend(first.max(last.back(SEGMENTS_MISSING_MAX)).until(last.next()));
        }
        expected.retain(|id| !found.contains_key(id) && state.log_ends.get(id) != Some(&0));
        for id in &expected {
            self.report.problem(format!("segment {id} of the log is missing"));
        }
        self.report.segments_lost += expected.len() as u64;
        self.report.items_lost_is_minimum |= !expected.is_empty();
        Ok(!expected.is_empty())
    }

    fn read_segment(&self, segment: &Found, known_end: Option<u64>) -> Result<Vec<u8>> {
        let mut bytes = read_all(&*self.storage, &segment.name)?;
        if let Some(end) = known_end {
            bytes.truncate(usize::try_from(end).unwrap_or(usize::MAX));
        }
        Ok(bytes)
    }

    /// Whether all records to which the segment's items refer are where they say, apart from unsound ones that an
    /// opening would regard as torn.
    fn segment_has_its_records(
        &mut self,
        segment: &Found,
        bytes: &[u8],
        known_end: Option<u64>,
        required: u64,
    ) -> Result<bool> {
        let mut unsettled = 0;
        for (keyspace, start) in references(segment, bytes, known_end) {
            let item = EncodedItem::decode(&bytes[start..]).map(|encoded| encoded.item);
            let counts = |item: &Item<'_>| (start as u64) < required || !self.is_judged_by_openings(item);
            let Some(item) = item.filter(counts) else { continue };
            unsettled += u64::from(!self.is_settled(keyspace, &item)?);
        }
        if unsettled > 0 {
            let name = &segment.name;
            self.report.problem(format!("{name}: {unsettled} large items are lost or have to move"));
        }
        Ok(unsettled == 0)
    }

    /// Positions of items whose records were never synced, so that they were never acknowledged as durable.
    fn never_durable(
        &mut self,
        segment: &Found,
        bytes: &[u8],
        known_end: Option<u64>,
        required: u64,
    ) -> Result<HashSet<usize>> {
        let mut starts = HashSet::new();
        for (keyspace, start) in references(segment, bytes, known_end) {
            let item = EncodedItem::decode(&bytes[start..]).map(|encoded| encoded.item);
            let counts = |item: &Item<'_>| (start as u64) >= required && self.is_judged_by_openings(item);
            let Some(item) = item.filter(counts) else { continue };
            if !self.is_settled(keyspace, &item)? {
                starts.insert(start);
            }
        }
        Ok(starts)
    }

    /// Writes the newest items of a segment as runs, the youngest of their keyspaces.
    fn convert(
        &mut self,
        id: SegmentId,
        segment: &Found,
        required: u64,
        structure: &mut Structure,
        plan: &LevelsPlan,
    ) -> Result<()> {
        let rebuilt = structure.report == ManifestRepair::Rebuilt;
        let state = &mut structure.state;
        let known_end = state.log_ends.get(&id).copied();
        let bytes = self.read_segment(segment, known_end)?;
        let never_durable = self.never_durable(segment, &bytes, known_end, required)?;
        let mut newest: Newest<'_> = BTreeMap::new();
        let scan = scan(segment, &bytes, known_end.unwrap_or(0), |keyspace, start| {
            let item = EncodedItem::decode(&bytes[start..]).map(|encoded| encoded.item);
            let counts = |owner: SegmentId| owner <= id;
            let owner_start = state.keyspaces.get(&keyspace).map_or(SegmentId(0), |owner| owner.log_start);
            if let Some(item) = item
                && counts(owner_start)
                && !never_durable.contains(&start)
                && (rebuilt || has_keyspace(state, keyspace))
            {
                newest.entry(keyspace).or_default().insert(item.key, start);
            }
        });
        self.report.records_kept += scan.records;
        for &keyspace in newest.keys() {
            // If a keyspace was never in a table, its name is lost with the manifest, and so is its hash key.
            state.keyspaces.entry(keyspace).or_insert_with(|| {
                let key0 = checksum64(&keyspace.0.to_le_bytes(), segment.seed);
                let hasher =
                    KeyHasher::SipHash13 { key0, key1: checksum64(&key0.to_le_bytes(), segment.seed) };
                unnamed(keyspace, hasher, PlanState::first(plan.clone(), PlanSource::Database))
            });
            state.next_keyspace = state.next_keyspace.max(keyspace.next());
        }
        let mut runs: Vec<RunItems<'_>> = Vec::new();
        for (&keyspace, newest) in &newest {
            let Some(owner) = state.keyspaces.get(&keyspace) else { continue };
            let mut items = YoungItems::default();
            for (key, &start) in newest {
                if let Some(encoded) = EncodedItem::decode(&bytes[start..]) {
                    items.push(owner.hasher.hash(key), 0, encoded.bytes);
                }
            }
            items.finish();
            let items = self.settle_all(keyspace, items, true)?;
            let count = self.items.get(&keyspace).copied().unwrap_or(0) + items.len() as u64;
            let is_semi_sorted = owner.hasher.is_semi_sorted();
            let shard_bits =
                if is_semi_sorted { 0 } else { owner.body.plan.plan.sharding.shards(count).ilog2() };
            let (hasher, plan) = (owner.hasher, &owner.body.plan);
            runs.push(RunItems { keyspace, hasher, plan, shard_bits, segments: SegmentSpan::one(id), items });
        }
        if runs.is_empty() {
            return Ok(());
        }
        let (file, empty) = self.write_runs(&runs)?;
        let places: Vec<_> = runs.iter().map(|run| (run.keyspace, run.shard_bits)).zip(empty).collect();
        for ((keyspace, shard_bits), dropped) in places {
            if let Some(owner) = state.keyspaces.get_mut(&keyspace) {
                owner.body.runs.push(RunState { file, shard_bits, repeats: 0.0, dropped });
            }
        }
        Ok(())
    }
}

/// Calls `visit` with the keyspace and the position of every item of a segment's sound records.
///
/// The segment must be complete up to `required`, or end with a seal if that is `u64::MAX`.
fn scan(segment: &Found, bytes: &[u8], required: u64, mut visit: impl FnMut(KeyspaceId, usize)) -> Scan {
    let mut scan = Scan::default();
    let mut is_sealed = false;
    let mut pieces = Pieces::new(segment.seed, bytes, BLOCK as usize);
    for piece in &mut pieces {
        match piece {
            Piece::Gap { bytes } => {
                scan.gaps += 1;
                scan.gap_bytes += bytes as u64;
            }
            Piece::Record { record, start } => {
                scan.records += 1;
                match record {
                    Record::Item { keyspace, item_start, .. } => visit(keyspace, start + item_start),
                    Record::Batch(items) => {
                        items.for_each(|(keyspace, _, item_start)| visit(keyspace, start + item_start));
                    }
                    Record::Mark(_) | Record::Unlogged { .. } | Record::Slots { .. } => scan.records -= 1,
                    Record::Seal { .. } => {
                        scan.records -= 1;
                        is_sealed = true;
                    }
                }
            }
        }
    }
    let end = pieces.position() as u64;
    if end < required && !is_sealed {
        scan.gaps += 1;
        // The length of a segment that lacks its seal is unknown.
        scan.gap_bytes += if required == u64::MAX { 0 } else { required - end };
    }
    scan
}

/// Keyspace and position of every item of a segment's sound records that refers to a blob file.
fn references(segment: &Found, bytes: &[u8], known_end: Option<u64>) -> Vec<(KeyspaceId, usize)> {
    let mut references = Vec::new();
    scan(segment, bytes, known_end.unwrap_or(0), |keyspace, start| {
        if EncodedItem::decode(&bytes[start..]).is_some_and(|encoded| encoded.item.is_reference()) {
            references.push((keyspace, start));
        }
    });
    references
}

fn starts_with_record(seed: u64, bytes: &[u8]) -> bool {
    let first = Pieces::new(seed, bytes, BLOCK as usize).next();
    matches!(first, Some(Piece::Record { record: Record::Item { .. } | Record::Batch(_), .. }))
}
