//! The manifest as a file.
//!
//! ```text
//! manifest-N:  header   magic 8 bytes "ALVMMAN\0" | major 2 | minor 2 | zero 4 | checksum 8 of bytes 0..16, seed 0
//!              records  length 4 | checksum 8 | payload: a JSON array of edits
//! CURRENT:     the name of the manifest, a line feed, its checksum in hexadecimal, a line feed; of a sealed manifest
//!              also its length in hexadecimal, a line feed, the checksum of that text, a line feed
//! ```
//!
//! A clean close seals the manifest: from then on no part of it can vanish unnoticed. Before that, a manifest that lost
//! its last records cannot be distinguished from one that a crash cut off.
//!
//! A record's checksum is XXH3-64 over its payload, seeded with the checksum of the previous record (the header's for
//! the first), so that a record is valid only behind the one it was written behind.

use std::sync::Arc;

use alluvium_base::Corruption;
use alluvium_base::checksum::checksum64;
use alluvium_io::{File, OpenMode, Storage};

use super::current::{CURRENT, Current, parse_current};
use super::edit::Edit;
#[cfg(any(test, feature = "simulation"))]
use super::plan_state::PlanState;
use super::state::DatabaseState;
use super::torn::is_torn;
use crate::error::{Error, IoContext, Result};

pub(crate) const CURRENT_NEW: &str = "CURRENT.new";
const MAGIC: [u8; 8] = *b"ALVMMAN\0";
const MAJOR: u16 = 2;
const MINOR: u16 = 0;
pub(super) const HEADER_LEN: usize = 24;
pub(super) const RECORD_HEADER_LEN: usize = 12;

/// The manifest that is being written.
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) file: Arc<dyn File>,
    pub(super) number: u64,
    pub(super) state: DatabaseState,
    pub(super) end: u64,
    pub(super) initial_end: u64,
    pub(super) chain: u64,
    pub(super) bytes_written: u64,
    pub(super) is_broken: bool,
    /// Whether the database was closed.
    pub(super) is_ended: bool,
}

impl Manifest {
    /// Writes `state` as a new manifest and makes it the current one, durably. `number` must be above all earlier ones.
    pub fn create(storage: Arc<dyn Storage>, number: u64, state: DatabaseState) -> Result<Self> {
        let manifest = Self::write_new(storage, number, state)?;
        manifest.prepare_current(None)?;
        manifest.switch_current()?;
        Ok(manifest)
    }

    /// Writes `state` as a new manifest, which is not yet the current one.
    pub(super) fn write_new(
        storage: Arc<dyn Storage>,
        number: u64,
        mut state: DatabaseState,
    ) -> Result<Self> {
        state.forget_unnamed();
        let name = file_name(number);
        if storage.list().context(|| "listing the database directory".to_owned())?.contains(&name) {
            // Left by a crash before it became current.
            storage.remove(&name).context(|| format!("removing {name}"))?;
        }
        let file = storage.open(&name, OpenMode::Create).context(|| format!("creating {name}"))?;
        let (header, chain) = header();
        let mut manifest = Self {
            storage,
            file,
            number,
            state: DatabaseState::default(),
            end: 0,
            initial_end: 0,
            chain,
            bytes_written: 0,
            is_broken: false,
            is_ended: false,
        };
        let mut bytes = header;
        let edits = state.to_edits();
        manifest.chain = encode_record(manifest.chain, &edits, &mut bytes);
        for edit in &edits {
            manifest.state.apply(edit).map_err(|reason| invalid(&name, 0, reason))?;
        }
        manifest.write(&bytes)?;
        manifest.initial_end = manifest.end;
        Ok(manifest)
    }

    pub fn state(&self) -> &DatabaseState {
        &self.state
    }

    /// Whether an append failed: then only the next opening can find out what is in the file.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Bytes written to manifests since the database was opened.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    pub fn name(&self) -> String {
        file_name(self.number)
    }
}

/// The state that the current manifest describes, and the manifest's number. `None` if the directory has no manifest.
pub(crate) fn read_current(storage: &dyn Storage) -> Result<Option<(u64, DatabaseState)>> {
    let names = storage.list().context(|| "listing the database directory".to_owned())?;
    if !names.iter().any(|name| name == CURRENT) {
        return Ok(None);
    }
    let content = read_all(storage, CURRENT)?;
    let Current { number, sealed_len } = parse_current(&content)?;
    let name = file_name(number);
    if !names.contains(&name) {
        return Err(Error::MissingFile { file: name });
    }
    let bytes = read_all(storage, &name)?;
    Ok(Some((number, parse(&name, &bytes, sealed_len)?)))
}

/// All bytes of a file.
pub(crate) fn read_all(storage: &dyn Storage, name: &str) -> Result<Vec<u8>> {
    let file = storage.open(name, OpenMode::Read).context(|| format!("opening {name}"))?;
    let len = file.len().context(|| format!("measuring {name}"))?;
    let mut bytes = vec![0; len as usize];
    let read = file.read_at(&mut bytes, 0).context(|| format!("reading {name}"))?;
    bytes.truncate(read);
    Ok(bytes)
}

/// The state that a manifest's bytes describe. A sealed manifest must have the length `sealed_len`.
///
/// The header and the first record, which contains the whole state at the start, were synced before `CURRENT` named the
/// file, so damage there is corruption. A damaged record is corruption, too. Only the last record may be torn by a
/// crash: then it was not acknowledged, and the manifest ends before it.
pub(crate) fn parse(name: &str, bytes: &[u8], sealed_len: Option<u64>) -> Result<DatabaseState> {
    let (expected, mut chain) = header();
    if bytes.len() < HEADER_LEN || bytes[..8] != MAGIC {
        return Err(Corruption::new(name, 0, "a manifest header", "other bytes").into());
    }
    let major = u16::from_le_bytes([bytes[8], bytes[9]]);
    if major > MAJOR {
        return Err(Error::NewerFormat { file: name.to_owned(), found: major, supported: MAJOR });
    }
    if bytes[16..24] != checksum64(&bytes[..16], 0).to_le_bytes() {
        return Err(Corruption::new(name, 0, "the header's checksum", "another one").into());
    }
    if bytes[..16] != expected[..16] {
        chain = checksum64(&bytes[..16], 0);
    }
    let mut state = DatabaseState::default();
    let mut at = HEADER_LEN;
    while let Some((payload, checksum)) = record_at(bytes, at, chain) {
        let edits: Vec<Edit> = serde_json::from_slice(payload)
            .map_err(|error| Corruption::new(name, at as u64, "a list of edits", error.to_string()))?;
        for edit in &edits {
            state.apply(edit).map_err(|reason| invalid(name, at as u64, reason))?;
        }
        chain = checksum;
        at += RECORD_HEADER_LEN + payload.len();
    }
    let is_cut = sealed_len.is_some_and(|len| (at as u64) < len);
    if at == HEADER_LEN || is_cut || !is_torn(bytes, at, chain) {
        let (expected, found) = ("a record with a matching checksum", "another checksum");
        return Err(Corruption::new(name, at as u64, expected, found).into());
    }
    Ok(state)
}

pub(super) fn record_at(bytes: &[u8], at: usize, chain: u64) -> Option<(&[u8], u64)> {
    let header = bytes.get(at..at.checked_add(RECORD_HEADER_LEN)?)?;
    let len = u32::from_le_bytes(header[..4].try_into().ok()?) as usize;
    let checksum = u64::from_le_bytes(header[4..].try_into().ok()?);
    let start = at + RECORD_HEADER_LEN;
    let payload = bytes.get(start..start.checked_add(len)?)?;
    (len > 0 && checksum == checksum64(payload, chain)).then_some((payload, checksum))
}

/// Appends a record to `out`; returns its checksum, which is the seed of the next record.
pub(super) fn encode_record(chain: u64, edits: &[Edit], out: &mut Vec<u8>) -> u64 {
    let payload = serde_json::to_vec(edits).expect("edits are plain data");
    let checksum = checksum64(&payload, chain);
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(&payload);
    checksum
}

pub(super) fn header() -> (Vec<u8>, u64) {
    let mut bytes = Vec::with_capacity(HEADER_LEN);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&MAJOR.to_le_bytes());
    bytes.extend_from_slice(&MINOR.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    let checksum = checksum64(&bytes, 0);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    (bytes, checksum)
}

pub(super) fn invalid(name: &str, offset: u64, reason: String) -> Error {
    Corruption::new(name, offset, "an edit that fits the state", reason).into()
}

/// The name of manifest `number`.
pub(crate) fn file_name(number: u64) -> String {
    format!("manifest-{number:06}")
}

/// The number in a manifest's name; `None` for other names.
pub(crate) fn parse_file_name(name: &str) -> Option<u64> {
    name.strip_prefix("manifest-")?.parse().ok()
}

/// Whether `name` is that of a manifest or of a file used while switching manifests.
pub(crate) fn is_file_name(name: &str) -> bool {
    name.starts_with("manifest-") || name == CURRENT || name == CURRENT_NEW
}

/// A sound manifest, for fuzzers to start from.
#[cfg(any(test, feature = "simulation"))]
pub(crate) fn sample() -> Vec<u8> {
    use alluvium_base::{BlobId, KeyspaceId, SegmentId, TableId};

    let (mut bytes, chain) = header();
    let hasher = alluvium_base::KeyHasher::Xxh3 { seed: 1 };
    let (keyspace, plan, source) = (0, alluvium_model::LevelsPlan::silt(), super::PlanSource::Own);
    let range = alluvium_base::HashRange::new(0, 1 << 100);
    let changed = PlanState {
        plan: alluvium_model::Plan::silt_tiering().try_into().expect("made of levels"),
        number: 1,
        source: super::PlanSource::Auto,
        before: Some(plan.clone()),
        items_planned: 1000,
    };
    let edits = [
        Edit::Database { seed: 5 },
        Edit::Counters { next_file: 9, next_segment: SegmentId(4), next_keyspace: KeyspaceId(1) },
        Edit::LogStart { segment: SegmentId(1) },
        Edit::LogEnd { segment: SegmentId(2), offset: 4096 },
        Edit::YoungDirectory { id: 7 },
        Edit::YoungTable { file: TableId(3) },
        Edit::CreateKeyspace {
            keyspace: KeyspaceId(keyspace),
            name: "items".to_owned(),
            hasher,
            plan,
            source,
        },
        Edit::AddRun {
            keyspace: KeyspaceId(keyspace),
            file: TableId(3),
            shard_bits: 1,
            repeats: 0.25,
            items: 12,
        },
        Edit::DropShards { keyspace: KeyspaceId(keyspace), file: TableId(3), shards: vec![1] },
        Edit::AddSorted {
            keyspace: KeyspaceId(keyspace),
            file: TableId(4),
            range,
            level: 1,
            over: false,
            repeats: 0.0,
            items: 0,
        },
        Edit::AddBlob { file: BlobId(5) },
        Edit::SealBlob { file: BlobId(5), bytes: 80 },
        Edit::BlobReferences { keyspace: KeyspaceId(keyspace), file: BlobId(5), delta: 40, durable: 0 },
        Edit::AddChained { keyspace: KeyspaceId(keyspace), segment: SegmentId(0), seed: 6, bytes: 4200 },
        Edit::SaveDirectory {
            keyspace: KeyspaceId(keyspace),
            file: 8,
            from: SegmentId(1),
            segment: SegmentId(1),
            offset: 4100,
        },
    ];
    let chain = encode_record(chain, &edits, &mut bytes);
    let edits = [
        Edit::SetPlan { keyspace: KeyspaceId(keyspace), plan: changed.clone() },
        Edit::DropSorted { keyspace: KeyspaceId(keyspace), level: 1, range },
    ];
    encode_record(chain, &edits, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use alluvium_base::{KeyspaceId, SegmentId, TableId};

    use super::*;

    #[test]
    fn what_fuzzers_start_from_is_sound() {
        let bytes = sample();
        let state = parse("m", &bytes, Some(bytes.len() as u64)).unwrap();
        assert_eq!(state.keyspaces[&KeyspaceId(0)].body.plan.number, 1);
        assert!(state.young_tables().eq([TableId(3)]));
    }

    fn example() -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut chain) = header();
        let mut starts = Vec::new();
        for next_file in 1..4 {
            starts.push(bytes.len());
            let edit = Edit::Counters { next_file, next_segment: SegmentId(1), next_keyspace: KeyspaceId(0) };
            chain = encode_record(chain, &[Edit::Database { seed: 5 }, edit], &mut bytes);
        }
        (bytes, starts)
    }

    #[test]
    fn a_cut_last_record_did_not_happen() {
        let (bytes, starts) = example();
        for cut in starts[1]..bytes.len() {
            let state = parse("m", &bytes[..cut], None).unwrap();
            assert_eq!(state.next_file, if cut < starts[2] { 1 } else { 2 });
        }
        assert_eq!(parse("m", &bytes, None).unwrap().next_file, 3);
    }

    #[test]
    fn damage_is_corruption() {
        let (bytes, _) = example();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let error = parse("m", &damaged, None).unwrap_err();
            assert!(matches!(error, Error::Corruption(_) | Error::NewerFormat { .. }), "byte {at}: {error}");
        }
    }

    #[test]
    fn a_sealed_manifest_is_whole_or_corrupt() {
        let (bytes, starts) = example();
        let len = Some(bytes.len() as u64);
        assert_eq!(parse("m", &bytes, len).unwrap().next_file, 3);
        for cut in 0..bytes.len() {
            assert!(parse("m", &bytes[..cut], len).is_err(), "cut to {cut}");
        }
        for at in starts[2]..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(parse("m", &damaged, len).is_err(), "byte {at}");
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic() {
        let (bytes, _) = example();
        for at in 0..bytes.len() {
            for value in [0, 0xff, 0x7f] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let _ = parse("m", &damaged, None);
                let _ = parse("m", &damaged[..at], None);
            }
        }
        for content in [&b""[..], b"manifest-000001\n", b"\xff\xfe", b"manifest-x\n0\n"] {
            assert!(parse_current(content).is_err());
        }
    }
}
