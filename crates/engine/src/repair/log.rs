//! Checking the log, and turning the sound records of a damaged one into runs.
//!
//! The judgement of openings is taken over where the log is sound. Where it is not, every sound record is kept, also
//! behind a gap: also those that an opening would leave out since nobody was told that they are durable.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use alluvium_base::KeyHasher;
use alluvium_base::checksum::checksum64;
use alluvium_io::OpenMode;
use alluvium_model::Plan;

use super::report::ManifestRepair;
use super::rewrite::RunItems;
use super::structure::{Structure, unnamed};
use super::{Repair, has_keyspace};
use crate::compact::YoungItems;
use crate::error::{IoContext, Result};
use crate::item::EncodedItem;
use crate::log::record::Record;
use crate::log::salvage::{Piece, Pieces};
use crate::log::segment::{self, BLOCK};
use crate::manifest::{DatabaseState, PlanSource, PlanState, RunState, read_all};
use crate::table::SegmentSpan;

/// A segment whose header is damaged was written in one of so many last sessions.
const SESSIONS_TRIED: u64 = 64;
/// So many segments in front of one count as missing at most: the numbers come from damaged files.
const SEGMENTS_MISSING_MAX: u64 = 64;

/// A log file that holds a segment.
struct Found {
    name: String,
    seed: u64,
    /// Whether the header is as it was written.
    is_sound: bool,
}

/// What a segment's records came to.
#[derive(Default)]
struct Scan {
    records: u64,
    gaps: u64,
    gap_bytes: u64,
}

/// The newest item of each key of a segment, by keyspace: where its encoding starts.
type Newest<'a> = BTreeMap<u32, HashMap<&'a [u8], usize>>;

impl Repair {
    /// Checks the log that `structure` names. If it is damaged, or the manifest was, all sound records become runs.
    pub fn check_log(&mut self, structure: &mut Structure, plan: &Plan) -> Result<()> {
        let rebuilt = structure.report == ManifestRepair::Rebuilt;
        let found = self.find_segments(&structure.state, structure.manifest_number)?;
        let mut damaged = self.count_missing(&found, &structure.state)?;
        for (&id, segment) in &found {
            let known_end = structure.state.log_ends.get(&id).copied();
            let bytes = self.read_segment(segment, known_end)?;
            let scan = scan(segment, &bytes, known_end, |_, _| {});
            self.report.segments += 1;
            self.report.log_gaps += scan.gaps;
            self.report.log_bytes_lost += scan.gap_bytes;
            damaged |= scan.gaps > 0 || !segment.is_sound;
            damaged |= !self.segment_has_its_records(segment, &bytes, known_end)?;
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
        for (&id, segment) in &found {
            self.convert(id, segment, structure, plan)?;
        }
        let state = &mut structure.state;
        let above = found.keys().next_back().map_or(0, |last| last + 1);
        let above = above.max(state.log_ends.keys().next_back().map_or(0, |last| last + 1));
        state.next_segment = state.next_segment.max(above).max(state.log_start).max(1);
        state.log_start = state.next_segment;
        state.log_ends.clear();
        self.replaced.extend(self.log_files()?);
        Ok(())
    }

    fn log_files(&self) -> Result<Vec<String>> {
        let names = self.storage.list().context(|| "listing the database directory".to_owned())?;
        Ok(names.into_iter().filter(|name| segment::is_file_name(name)).collect())
    }

    /// All segments that count, those with damaged headers included.
    fn find_segments(&mut self, state: &DatabaseState, sessions: u64) -> Result<BTreeMap<u64, Found>> {
        let mut found = BTreeMap::new();
        let mut headless = Vec::new();
        for name in self.log_files()? {
            let block = self.read_start(&name);
            match segment::parse_header(&name, &block)? {
                Some((id, seed)) if id >= state.log_start => {
                    found.insert(id, Found { name, seed, is_sound: true });
                }
                Some(_) => {}
                None => headless.push((name, block)),
            }
        }
        found.retain(|id, _| state.log_ends.get(id) != Some(&0));
        for (name, block) in headless {
            // A seed that follows from a number proves that number; what the header still shows comes after.
            let likely = likely_identities(state, sessions, &found);
            let candidates = likely.into_iter().chain(stored_identity(&block));
            let bytes = read_all(&*self.storage, &name).unwrap_or_default();
            let is_it = |&(id, seed): &(u64, u64)| {
                let is_plausible = (state.log_start..state.next_segment + SEGMENTS_MISSING_MAX).contains(&id);
                is_plausible && !found.contains_key(&id) && starts_with_record(seed, &bytes)
            };
            if let Some((id, seed)) = candidates.into_iter().find(is_it) {
                found.insert(id, Found { name, seed, is_sound: false });
            }
        }
        Ok(found)
    }

    /// The first bytes of a log file; what can't be read is none.
    fn read_start(&self, name: &str) -> Vec<u8> {
        let mut block = vec![0; BLOCK as usize];
        let read = self.storage.open(name, OpenMode::Read).and_then(|file| file.read_at(&mut block, 0));
        block.truncate(read.unwrap_or(0));
        block
    }

    /// Notes the segments that should be there; whether there are any.
    fn count_missing(&mut self, found: &BTreeMap<u64, Found>, state: &DatabaseState) -> Result<bool> {
        let mut expected: BTreeSet<u64> =
            state.log_ends.iter().filter(|(_, end)| **end > 0).map(|(&id, _)| id).collect();
        // A segment behind one that is missing counts for nothing in an opening. That is right for one without records,
        // made ahead of its time.
        for (&id, segment) in found {
            let bytes = self.read_segment(segment, state.log_ends.get(&id).copied())?;
            if starts_with_record(segment.seed, &bytes) {
                expected.extend(state.log_start.max(id.saturating_sub(SEGMENTS_MISSING_MAX))..id);
            }
        }
        expected.retain(|id| !found.contains_key(id) && state.log_ends.get(id) != Some(&0));
        for id in &expected {
            self.report.problem(format!("segment {id} of the log is missing"));
        }
        self.report.segments_lost += expected.len() as u64;
        Ok(!expected.is_empty())
    }

    fn read_segment(&self, segment: &Found, known_end: Option<u64>) -> Result<Vec<u8>> {
        let mut bytes = read_all(&*self.storage, &segment.name)?;
        if let Some(end) = known_end {
            bytes.truncate(usize::try_from(end).unwrap_or(usize::MAX));
        }
        Ok(bytes)
    }

    /// Whether everything that the segment's items refer to is where they say, as far as an opening would not look.
    fn segment_has_its_records(
        &mut self,
        segment: &Found,
        bytes: &[u8],
        known_end: Option<u64>,
    ) -> Result<bool> {
        let mut unsettled = 0;
        for (keyspace, start) in references(segment, bytes, known_end) {
            let item = EncodedItem::decode(&bytes[start..]).map(|encoded| encoded.item);
            let Some(item) = item.filter(|item| !self.is_judged_by_openings(item)) else { continue };
            unsettled += u64::from(!self.is_settled(keyspace, &item)?);
        }
        if unsettled > 0 {
            let name = &segment.name;
            self.report.problem(format!("{name}: {unsettled} large items are lost or have to move"));
        }
        Ok(unsettled == 0)
    }

    /// Items whose records were never synced, so that nobody was told that they are durable: where they start.
    fn never_durable(
        &mut self,
        segment: &Found,
        bytes: &[u8],
        known_end: Option<u64>,
    ) -> Result<HashSet<usize>> {
        let mut starts = HashSet::new();
        for (keyspace, start) in references(segment, bytes, known_end) {
            let item = EncodedItem::decode(&bytes[start..]).map(|encoded| encoded.item);
            let Some(item) = item.filter(|item| self.is_judged_by_openings(item)) else { continue };
            if !self.is_settled(keyspace, &item)? {
                starts.insert(start);
            }
        }
        Ok(starts)
    }

    /// Writes the newest items of a segment as runs, the youngest of their keyspaces.
    fn convert(&mut self, id: u64, segment: &Found, structure: &mut Structure, plan: &Plan) -> Result<()> {
        let rebuilt = structure.report == ManifestRepair::Rebuilt;
        let state = &mut structure.state;
        let known_end = state.log_ends.get(&id).copied();
        let bytes = self.read_segment(segment, known_end)?;
        let never_durable = self.never_durable(segment, &bytes, known_end)?;
        let mut newest: Newest<'_> = BTreeMap::new();
        let scan = scan(segment, &bytes, known_end, |keyspace, start| {
            let item = EncodedItem::decode(&bytes[start..]).map(|encoded| encoded.item);
            let counts = |owner: u64| owner <= id;
            let owner_start = state.keyspaces.get(&keyspace).map_or(0, |owner| owner.log_start);
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
            // The name of a keyspace that was never in a table is lost with the manifest, and so is its hash key.
            state.keyspaces.entry(keyspace).or_insert_with(|| {
                let key0 = checksum64(&keyspace.to_le_bytes(), segment.seed);
                let hasher =
                    KeyHasher::SipHash13 { key0, key1: checksum64(&key0.to_le_bytes(), segment.seed) };
                unnamed(keyspace, hasher, PlanState::first(plan.clone(), PlanSource::Database))
            });
            state.next_keyspace = state.next_keyspace.max(keyspace + 1);
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
            let shard_bits = if is_semi_sorted { 0 } else { shard_bits(&owner.plan.plan, count) };
            let (hasher, plan) = (owner.hasher, &owner.plan);
            runs.push(RunItems { keyspace, hasher, plan, shard_bits, segments: SegmentSpan::one(id), items });
        }
        if runs.is_empty() {
            return Ok(());
        }
        let (file, empty) = self.write_runs(&runs)?;
        let places: Vec<_> = runs.iter().map(|run| (run.keyspace, run.shard_bits)).zip(empty).collect();
        for ((keyspace, shard_bits), dropped) in places {
            if let Some(owner) = state.keyspaces.get_mut(&keyspace) {
                owner.runs.push(RunState { file, shard_bits, repeats: 0.0, dropped });
            }
        }
        Ok(())
    }
}

/// Calls `visit` with the keyspace and the place of every item of a segment's sound records.
fn scan(segment: &Found, bytes: &[u8], known_end: Option<u64>, mut visit: impl FnMut(u32, usize)) -> Scan {
    let mut scan = Scan::default();
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
                    Record::Seal { .. } => scan.records -= 1,
                }
            }
        }
    }
    let missing = known_end.map_or(0, |end| end.saturating_sub(pieces.position() as u64));
    if missing > 0 {
        scan.gaps += 1;
        scan.gap_bytes += missing;
    }
    scan
}

/// Keyspace and start of every item of a segment's sound records that refers to a blob file.
fn references(segment: &Found, bytes: &[u8], known_end: Option<u64>) -> Vec<(u32, usize)> {
    let mut references = Vec::new();
    scan(segment, bytes, known_end, |keyspace, start| {
        if EncodedItem::decode(&bytes[start..]).is_some_and(|encoded| encoded.item.is_reference()) {
            references.push((keyspace, start));
        }
    });
    references
}

/// Number and seed that a damaged header still shows: the damage may be elsewhere in it.
fn stored_identity(block: &[u8]) -> Option<(u64, u64)> {
    let field = |at: usize| Some(u64::from_le_bytes(block.get(at..at + 8)?.try_into().ok()?));
    Some((field(16)?, field(24)?)).filter(|&(id, seed)| id > 0 && seed > 0)
}

/// Numbers and seeds of the segments that are missing: seeds follow from the database's, the session and the number.
fn likely_identities(state: &DatabaseState, sessions: u64, found: &BTreeMap<u64, Found>) -> Vec<(u64, u64)> {
    let last = [found.keys().next_back(), state.log_ends.keys().next_back()].into_iter().flatten().max();
    let last = last.copied().unwrap_or(0).max(state.next_segment);
    let mut identities = Vec::new();
    for session in (0..=sessions).rev().take(SESSIONS_TRIED as usize) {
        let session_seed = checksum64(&session.to_le_bytes(), state.seed);
        let ids = state.log_start..=last.min(state.log_start.saturating_add(SESSIONS_TRIED));
        identities.extend(ids.map(|id| (id, checksum64(&id.to_le_bytes(), session_seed))));
    }
    identities
}

fn starts_with_record(seed: u64, bytes: &[u8]) -> bool {
    let first = Pieces::new(seed, bytes, BLOCK as usize).next();
    matches!(first, Some(Piece::Record { record: Record::Item { .. } | Record::Batch(_), .. }))
}

fn shard_bits(plan: &Plan, items: u64) -> u32 {
    match plan {
        Plan::Levels { sharding, .. } => sharding.shards(items).ilog2(),
        Plan::Chained(_) => 0,
    }
}
