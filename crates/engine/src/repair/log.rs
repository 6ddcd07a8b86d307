//! Checks the log, and turns the sound records of a damaged one into runs.
//!
//! Where the log is sound, its records count as in an opening. Otherwise every sound record is kept, even after a gap,
//! including records that an opening would leave out because they were never acknowledged as durable.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use alluvium_base::checksum::checksum64;
use alluvium_base::{BlobId, KeyHasher, KeyspaceId, SegmentId};
use alluvium_model::LevelsPlan;

use super::chained::ChainedSegments;
use super::report::ManifestRepair;
use super::rewrite::RunItems;
use super::segments::{Found, SegmentFiles, references, scan, starts_with_record};
use super::structure::{Structure, unnamed};
use super::{Repair, has_keyspace};
use crate::blob::Reference;
use crate::error::Result;
use crate::item::{EncodedItem, Item, Link};
use crate::log::Position;
use crate::log::salvage::proven_durable;
use crate::log::segment::BLOCK;
use crate::manifest::{DatabaseState, PlanSource, PlanState, RunState};
use crate::merge::YoungItems;
use crate::table::SegmentSpan;

/// Maximum number of segments before one that count as missing: the numbers come from damaged files.
const SEGMENTS_MISSING_MAX: u64 = 64;

/// The log as a repair finds it.
pub(super) struct LogSurvey {
    segments: BTreeMap<SegmentId, Found>,
    /// Segments from before its start that chained keyspaces need.
    chained: ChainedSegments,
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

/// A segment, and what counts in it.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub id: SegmentId,
    pub segment: &'a Found,
    pub known_end: Option<u64>,
    /// Everything in front of this must be sound.
    pub required: u64,
    /// If given, only records with links of these keyspaces count.
    pub only: Option<&'a BTreeSet<KeyspaceId>>,
}

impl Part<'_> {
    fn has(&self, keyspace: KeyspaceId, encoded: &EncodedItem<'_>) -> bool {
        self.only.is_none_or(|only| only.contains(&keyspace) && Link::of(encoded.bytes).is_some())
    }
}

/// The newest item of each key of a segment, by keyspace: the position of its encoding.
type Newest<'a> = BTreeMap<KeyspaceId, HashMap<&'a [u8], usize>>;

impl Repair {
    /// Finds the segments of the log, and what they prove.
    pub fn survey_log(&self, structure: &Structure) -> Result<LogSurvey> {
        let state = &structure.state;
        let SegmentFiles { log: segments, older, unknown } =
            self.find_segments(state, structure.manifest_number)?;
        let chained = match &structure.in_tables {
            Some(in_tables) => self.chained_segments_by_records(state, older, in_tables)?,
            None => self.chained_segments(state, older, unknown),
        };
        let (segment, offset) = state.synced();
        let mut proven = Position { segment, offset };
        for (&id, segment) in segments.iter().filter(|(id, _)| !state.log_ends.contains_key(id)) {
            let bytes = self.read_segment(segment, None)?;
            let durable = proven_durable(id, segment.seed, &bytes, BLOCK as usize);
            proven = proven.max(durable.unwrap_or_default());
        }
        let survey = LogSurvey { segments, chained, proven, blobs: BTreeMap::new() };
        let mut blobs = state.durable_blobs.clone();
        let log = survey.segments.iter().map(|(&id, segment)| {
            let known_end = state.log_ends.get(&id).copied();
            (segment, known_end, survey.required(id, known_end))
        });
        let chained = survey.chained.present.values().map(|chained| (&chained.found, chained.end, u64::MAX));
        for (segment, known_end, required) in log.chain(chained) {
            let bytes = self.read_segment(segment, known_end)?;
            for (_, start) in references(segment, &bytes, known_end) {
                let item = EncodedItem::decode(&bytes[start..]).map(|encoded| encoded.item);
                let is_durable = (start as u64) < required;
                let Some(item) = item.filter(|_| is_durable) else { continue };
                for reference in Reference::all_of(&item) {
                    let end = blobs.entry(reference.file).or_default();
                    *end = (*end).max(reference.body_end());
                }
            }
        }
        Ok(LogSurvey { blobs, ..survey })
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
        damaged |= self.count_missing_chained(&survey.chained);
        let log_ends = structure.state.log_ends.clone();
        let log = found.iter().map(|(&id, segment)| {
            let known_end = log_ends.get(&id).copied();
            Part { id, segment, known_end, required: survey.required(id, known_end), only: None }
        });
        // Those of chained keyspaces are older than the others.
        let parts: Vec<Part<'_>> = survey.chained.parts().chain(log).collect();
        for part in &parts {
            damaged |= !self.is_part_sound(part)?;
        }
        if !damaged && !rebuilt {
            return self.count_chained_references(&survey.chained);
        }
        for part in &parts {
            self.convert(part, structure, plan)?;
        }
        let state = &mut structure.state;
        for keyspace in state.keyspaces.values_mut() {
            keyspace.chained.clear();
            keyspace.directory = None;
        }
        let above = found.keys().next_back().map_or(SegmentId(0), |last| last.next());
        let above = above.max(state.log_ends.keys().next_back().map_or(SegmentId(0), |last| last.next()));
        state.next_segment = state.next_segment.max(above).max(state.log_start).max(SegmentId(1));
        state.log_start = state.next_segment;
        state.log_ends.clear();
        self.replaced.extend(self.log_files()?);
        Ok(())
    }

    /// Whether all records of a segment are sound, and those to which they refer. Reports what is not.
    fn is_part_sound(&mut self, part: &Part<'_>) -> Result<bool> {
        let Part { id, segment, known_end, required, .. } = *part;
        let bytes = self.read_segment(segment, known_end)?;
        let scan = scan(segment, &bytes, required, |_, _| {});
        self.report.segments += 1;
        self.report.log_gaps += scan.gaps;
        self.report.items_lost_is_minimum |= scan.gaps > 0;
        self.report.log_bytes_lost += scan.gap_bytes;
        if !segment.is_sound {
            self.report.problem(format!("{}: the header of segment {id} is damaged", segment.name));
        }
        if scan.gaps > 0 {
            let (gaps, gap_bytes) = (scan.gaps, scan.gap_bytes);
            let name = &segment.name;
            self.report.problem(format!("{name}: records are lost in {gaps} places, {gap_bytes} bytes"));
        }
        let has_records = self.segment_has_its_records(segment, &bytes, known_end, required)?;
        Ok(scan.gaps == 0 && segment.is_sound && has_records)
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
    fn convert(&mut self, part: &Part<'_>, structure: &mut Structure, plan: &LevelsPlan) -> Result<()> {
        let Part { id, segment, known_end, required, .. } = *part;
        let rebuilt = structure.report == ManifestRepair::Rebuilt;
        let state = &mut structure.state;
        let bytes = self.read_segment(segment, known_end)?;
        let never_durable = self.never_durable(segment, &bytes, known_end, required)?;
        let mut newest: Newest<'_> = BTreeMap::new();
        let scan = scan(segment, &bytes, known_end.unwrap_or(0), |keyspace, start| {
            let encoded = EncodedItem::decode(&bytes[start..]);
            let item = encoded.filter(|encoded| part.has(keyspace, encoded)).map(|encoded| encoded.item);
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
