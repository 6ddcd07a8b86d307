//! `bench dedup`: the fingerprint index of a deduplicating backup, over real files.
//!
//! Files are cut at boundaries that depend on their content (FastCDC, Xia et al., ATC 2016). Chunks are named by SHA-1;
//! each name is looked up in the store and put there with its position if absent: the workload that SILT was built for
//! (§1, §5). An exact map in memory sees the same chunks, and every answer must agree with it.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alluvium::{Db, Durability, Keyspace};
use alluvium_base::units;
use alluvium_model::Plan;
use fastcdc::v2020::StreamCDC;
use indicatif::ProgressBar;
use sha1::{Digest, Sha1};

use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::report::Report;
use crate::work_directory::default_parent;

/// Options of `bench dedup`.
#[derive(Clone, Debug, clap::Args)]
pub struct DedupOptions {
    /// Directory whose files are deduplicated; it is only read
    pub input: PathBuf,
    /// Storage layout: the name of a plan
    #[arg(long, default_value = "silt")]
    pub plan: String,
    /// Average bytes of a chunk; chunks have between a quarter of this and four times as many
    #[arg(long, default_value = "8KiB", value_parser = units::parse_bytes)]
    pub chunk: u64,
    /// Chunks looked up in one multi_get
    #[arg(long, default_value_t = 32)]
    pub batch: usize,
    /// Directory for the database, which gets a subdirectory `alluvium-bench-dedup`. The default is Cargo's
    /// `target` if the current directory has one, else the system's temporary directory
    #[arg(long, default_value_os_t = default_parent())]
    pub dir: PathBuf,
}

const SUBDIRECTORY: &str = "alluvium-bench-dedup";

/// A chunk's name.
type Fingerprint = [u8; 20];

/// Where a chunk was first seen: the value that the store keeps for a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    file: u32,
    bytes: u32,
    offset: u64,
}

impl Place {
    fn encode(self) -> [u8; 16] {
        let mut out = [0; 16];
        out[..4].copy_from_slice(&self.file.to_le_bytes());
        out[4..8].copy_from_slice(&self.bytes.to_le_bytes());
        out[8..].copy_from_slice(&self.offset.to_le_bytes());
        out
    }
}

/// The store, the exact map to compare with, and counters.
struct Deduplicator {
    keyspace: Keyspace,
    exact: HashMap<Fingerprint, Place>,
    batch: usize,
    pending: Vec<(Fingerprint, Place)>,
    chunks: u64,
    bytes: u64,
    unique_bytes: u64,
    lookup_time: Duration,
    insert_time: Duration,
}

/// Deduplicates all files below the input, settles, and looks up every chunk again.
///
/// # Errors
/// A chunk that only one of store and exact map knows, or for which they name different positions, is a wrong answer.
/// Files that cannot be read are skipped and counted in `files_skipped`.
pub fn run(options: &DedupOptions, report: &mut Report) -> Result<(), BenchError> {
    if !(256..=4 << 20).contains(&options.chunk) {
        return Err(BenchError::Usage("--chunk must be between 256 B and 4 MiB".to_owned()));
    }
    if options.batch == 0 {
        return Err(BenchError::Usage("--batch must be at least 1".to_owned()));
    }
    let directory = report.directories().create(&options.dir, SUBDIRECTORY)?;
    let files = files_below(&options.input, &directory.path().canonicalize()?)?;
    let plan = Plan::named(&options.plan).map_err(|error| BenchError::Usage(error.to_string()))?;
    // The directory of a chained plan is made for a number of items.
    let expected_items = match plan {
        Plan::Chained(_) => bytes_of(&files) / options.chunk,
        Plan::Levels(_) => 0,
    };
    let builder = Db::builder(directory.path()).plan(plan).expected_items(expected_items);
    let db = builder.durability(Durability::Buffered).open()?;
    let mut deduplicator = Deduplicator::new(db.keyspace("chunks")?, options.batch);

    let start = Instant::now();
    let bar = ProgressBar::new(files.len() as u64);
    let mut files_skipped = 0_u64;
    for (number, path) in files.iter().enumerate() {
        if !deduplicator.file(number as u32, path, options.chunk as u32)? {
            files_skipped += 1;
        }
        bar.inc(1);
    }
    deduplicator.flush()?;
    let elapsed = start.elapsed();
    bar.finish_and_clear();

    let measurement = |case: &str| {
        Measurement::new("dedup", case)
            .config("plan", options.plan.clone())
            .config("chunk_bytes", options.chunk)
            .config("batch", options.batch)
    };
    let unique = deduplicator.exact.len() as u64;
    let ingest = measurement("ingest")
        .metric("files", files.len())
        .metric("files_skipped", files_skipped)
        .metric("bytes", deduplicator.bytes)
        .metric("chunks", deduplicator.chunks)
        .metric("unique_chunks", unique)
        .metric("dedup_ratio", deduplicator.bytes as f64 / deduplicator.unique_bytes.max(1) as f64)
        .metric("lookups_per_s", per_second(deduplicator.chunks, deduplicator.lookup_time))
        .metric("inserts_per_s", per_second(unique, deduplicator.insert_time))
        .metric("chunks_per_s", per_second(deduplicator.chunks, elapsed))
        .metric("mib_per_s", per_second(deduplicator.bytes, elapsed) / f64::from(1 << 20));
    report.add(ingest)?;

    db.wait_idle()?;
    let elapsed = deduplicator.check_all()?;
    report.add(
        measurement("check")
            .metric("unique_chunks", unique)
            .metric("lookups_per_s", per_second(unique, elapsed)),
    )?;
    drop(deduplicator);
    db.close()?;
    Ok(directory.remove()?)
}

impl Deduplicator {
    fn new(keyspace: Keyspace, batch: usize) -> Self {
        Self {
            keyspace,
            exact: HashMap::new(),
            batch,
            pending: Vec::new(),
            chunks: 0,
            bytes: 0,
            unique_bytes: 0,
            lookup_time: Duration::ZERO,
            insert_time: Duration::ZERO,
        }
    }

    /// Processes all chunks of a file; `false` if it cannot be read to its end.
    fn file(&mut self, number: u32, path: &Path, chunk_bytes: u32) -> Result<bool, BenchError> {
        let Ok(file) = File::open(path) else { return Ok(false) };
        for chunk in StreamCDC::new(file, chunk_bytes / 4, chunk_bytes, chunk_bytes * 4) {
            let Ok(chunk) = chunk else { return Ok(false) };
            let fingerprint: Fingerprint = Sha1::digest(&chunk.data).into();
            let place = Place { file: number, bytes: chunk.length as u32, offset: chunk.offset };
            self.pending.push((fingerprint, place));
            if self.pending.len() == self.batch {
                self.flush()?;
            }
        }
        Ok(true)
    }

    /// Looks up the pending chunks, puts those that are new, and compares both with the exact map.
    fn flush(&mut self) -> Result<(), BenchError> {
        let pending = std::mem::take(&mut self.pending);
        let keys: Vec<&[u8]> = pending.iter().map(|(fingerprint, _)| &fingerprint[..]).collect();
        let start = Instant::now();
        let answers = self.keyspace.multi_get(&keys)?;
        self.lookup_time += start.elapsed();

        for ((fingerprint, _), answer) in pending.iter().zip(&answers) {
            same(fingerprint, self.exact.get(fingerprint), answer.as_deref())?;
        }
        let start = Instant::now();
        for (fingerprint, place) in &pending {
            self.chunks += 1;
            self.bytes += u64::from(place.bytes);
            if !self.exact.contains_key(fingerprint) {
                self.exact.insert(*fingerprint, *place);
                self.unique_bytes += u64::from(place.bytes);
                self.keyspace.insert(fingerprint, place.encode())?;
            }
        }
        self.insert_time += start.elapsed();
        Ok(())
    }

    /// Looks up every chunk once more, in the order of the exact map, which is arbitrary.
    fn check_all(&self) -> Result<Duration, BenchError> {
        let start = Instant::now();
        let all: Vec<(&Fingerprint, &Place)> = self.exact.iter().collect();
        for part in all.chunks(self.batch) {
            let keys: Vec<&[u8]> = part.iter().map(|(fingerprint, _)| &fingerprint[..]).collect();
            for ((fingerprint, place), answer) in part.iter().zip(self.keyspace.multi_get(&keys)?) {
                same(fingerprint, Some(place), answer.as_deref())?;
            }
        }
        Ok(start.elapsed())
    }
}

fn same(fingerprint: &Fingerprint, right: Option<&Place>, answer: Option<&[u8]>) -> Result<(), BenchError> {
    if right.map(|place| place.encode()).as_ref().map(|bytes| &bytes[..]) == answer {
        return Ok(());
    }
    Err(BenchError::WrongAnswer(format!("chunk {fingerprint:02x?}: {answer:02x?} where {right:?} is right")))
}

fn bytes_of(files: &[PathBuf]) -> u64 {
    // A file that is gone or cannot be looked at is skipped later, too.
    files.iter().filter_map(|file| std::fs::metadata(file).ok()).map(|file| file.len()).sum()
}

fn per_second(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64().max(1e-9)
}

/// All plain files below `input`, in the order of their paths, except those in `without`. Symbolic links are not
/// followed.
fn files_below(input: &Path, without: &Path) -> Result<Vec<PathBuf>, BenchError> {
    let mut files = Vec::new();
    let mut folders = vec![input.canonicalize()?];
    while let Some(folder) = folders.pop() {
        if folder == without {
            continue;
        }
        // A folder that cannot be listed (no permission, removed meanwhile) counts as empty.
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn copies_are_found_and_every_chunk_again() {
        let input = tempfile::tempdir().unwrap();
        let work = tempfile::tempdir().unwrap();
        let mut bytes = vec![0; 200_000];
        Random::new(1, 1).fill(&mut bytes);
        std::fs::create_dir(input.path().join("inner")).unwrap();
        for name in ["a", "b", "inner/c"] {
            std::fs::write(input.path().join(name), &bytes).unwrap();
        }
        for plan in ["silt", "skimpystash"] {
            let options = DedupOptions {
                input: input.path().to_owned(),
                plan: plan.to_owned(),
                chunk: 4096,
                batch: 5,
                dir: work.path().to_owned(),
            };
            let mut report = Report::new(false);
            run(&options, &mut report).unwrap();
            let ingest = &report.measurements()[0].metrics;
            assert_eq!(ingest["files"], 3);
            assert_eq!(ingest["bytes"], 600_000);
            assert_eq!(ingest["dedup_ratio"], 3.0);
            assert!(!work.path().join(SUBDIRECTORY).exists());
        }
    }
}
