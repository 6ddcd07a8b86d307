//! The block device under a directory: its counters, the space it gives to files, and its raw speed.
//!
//! The counters are the kernel's for the whole device, so numbers derived from them are right only if nothing else is
//! running. Per-process counters overcount mapped writes and miss those that the kernel does later.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alluvium_io::DeviceCounters;
use alluvium_io::calibrate::{RandomReads, Rate, RawFiles, RawMethod, measure_raw_reads};

use crate::random::Random;

/// The block device that contains a directory.
#[derive(Debug)]
pub struct Device {
    path: PathBuf,
    directory: File,
}

impl Device {
    /// The device of `directory`.
    pub fn of(directory: &Path) -> io::Result<Self> {
        Ok(Self { path: directory.to_owned(), directory: File::open(directory)? })
    }

    /// The counters after everything written so far, to any file of the file system, has reached the device. `None` if
    /// the file system is not on a block device (tmpfs, network) or the system does not publish its counters.
    pub fn settled_counters(&self) -> Option<DeviceCounters> {
        rustix::fs::syncfs(&self.directory).ok()?;
        DeviceCounters::of(&self.path)
    }
}

/// Blocks in file metadata have 512 bytes, whatever block size the file system uses (stat(2)).
const BLOCK_BYTES: u64 = 512;

/// Bytes of the device that the files in `directory` occupy, without holes.
pub fn allocated_bytes(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    entries
        .flatten()
        .filter_map(|entry| entry.metadata().ok().map(|metadata| (entry, metadata)))
        .map(
            |(entry, metadata)| {
                if metadata.is_dir() {
                    allocated_bytes(&entry.path())
                } else {
                    metadata.blocks() * BLOCK_BYTES
                }
            },
        )
        .sum()
}

/// A file of a given size from which raw pages are read; removed when dropped. A device serves a small span faster than
/// a large one.
#[derive(Debug)]
pub struct RawFile {
    path: PathBuf,
}

/// Maximum bytes that are written for a comparison.
const SPAN_BYTES_MAX: u64 = 8 << 30;
const CHUNK_BYTES: usize = 1 << 20;

impl RawFile {
    /// Writes a file of about `bytes` incompressible bytes at `path`, through to the device.
    pub fn create(path: PathBuf, bytes: u64) -> io::Result<Self> {
        let chunks = bytes.clamp(1, SPAN_BYTES_MAX).div_ceil(CHUNK_BYTES as u64);
        let mut file = File::create(&path)?;
        let raw = Self { path };
        let mut random = Random::new(bytes, 0);
        let mut chunk = vec![0; CHUNK_BYTES];
        for _ in 0..chunks {
            random.fill(&mut chunk);
            file.write_all(&chunk)?;
        }
        file.sync_all()?;
        // Leaves the page cache to what is measured. It is only a hint, so a refusal changes nothing.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        Ok(raw)
    }
}

impl Drop for RawFile {
    fn drop(&mut self) {
        // A file that remains does no harm, and a destructor cannot report an error.
        let _ = fs::remove_file(&self.path);
    }
}

/// Reads of random 4 KiB pages of a database's own tables and blob files, by each method that the system offers, in
/// turns with the operations with which they are compared. Other files would not do: what was written a moment ago, or
/// takes less space, may be in a cache of the device or of its host.
#[derive(Debug)]
pub struct RawReads {
    directories: Vec<PathBuf>,
    in_flight: usize,
    turns: u64,
    ways: Vec<Way>,
}

/// Maximum number of files that a turn of [`RawReads`] opens: a large database has tens of thousands. The next turn
/// opens others.
const RAW_FILES_MAX: usize = 500;

/// The results of one method of reading.
#[derive(Debug)]
struct Way {
    method: RawMethod,
    /// All turns together.
    sum: Rate,
    /// Reads per second of each turn.
    ops_per_s: Vec<f64>,
}

impl RawReads {
    /// Reads of the tables and blob files in `directories`; `in_flight` reads will be in flight at once. `None` if
    /// there is no such file.
    ///
    /// # Errors
    /// The system's error if a directory cannot be read.
    pub fn of_tables(directories: Vec<PathBuf>, in_flight: usize) -> io::Result<Option<Self>> {
        let is_any = !tables(&directories)?.is_empty();
        Ok(is_any.then(|| Self { directories, in_flight, turns: 0, ways: Vec::new() }))
    }

    /// Opens the files of the present turn: up to [`RAW_FILES_MAX`], spread over all of them.
    fn open(&self) -> io::Result<RawFiles> {
        loop {
            let paths = tables(&self.directories)?;
            let step = paths.len().div_ceil(RAW_FILES_MAX).max(1);
            match RawFiles::open(paths.iter().skip(self.turns as usize % step).step_by(step)) {
                // A merge has just removed one.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                outcome => return outcome,
            }
        }
    }

    /// Reads for `duration` by each method.
    pub fn measure(&mut self, duration: Duration) -> io::Result<()> {
        self.turns += 1;
        let files = self.open()?;
        for method in [RawMethod::Uring, RawMethod::Threads] {
            let reads =
                RandomReads { seed: self.turns, ..RandomReads::new(self.in_flight, files.bytes(), duration) };
            let rate = match measure_raw_reads(&files, &reads, method) {
                // Containers often forbid io_uring; threads are always available.
                Err(_) if method == RawMethod::Uring => continue,
                outcome => outcome?,
            };
            let ops_per_s = rate.ops_per_s();
            match self.ways.iter_mut().find(|way| way.method == method) {
                Some(way) => {
                    way.sum.add(&rate);
                    way.ops_per_s.push(ops_per_s);
                }
                None => self.ways.push(Way { method, sum: rate, ops_per_s: vec![ops_per_s] }),
            }
        }
        Ok(())
    }

    /// The rate of a method over all turns; `None` if the system does not offer it.
    pub fn rate(&self, method: RawMethod) -> Option<&Rate> {
        self.ways.iter().find(|way| way.method == method).map(|way| &way.sum)
    }

    /// The rate of the fastest method over all turns.
    pub fn best(&self) -> Option<&Rate> {
        let rates = self.ways.iter().map(|way| &way.sum);
        rates.max_by(|a, b| a.ops_per_s().total_cmp(&b.ops_per_s()))
    }

    /// Compares `rates`, each of which was measured between two turns, with the mean of these two turns. Takes the
    /// median of each method's quotients, and returns the smallest median. The quotient of the sums would mostly
    /// reflect slow moments of the device, which affect only one of the two sides.
    pub fn quotient(&self, rates: &[f64]) -> Option<f64> {
        let of_way = |way: &Way| {
            let around = way.ops_per_s.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
            median(rates.iter().zip(around).map(|(rate, raw)| rate / raw).collect())
        };
        self.ways.iter().filter_map(of_way).min_by(f64::total_cmp)
    }
}

/// The tables and blob files in `directories`, in order, without those that are empty or have holes: reads of a hole do
/// not reach the device.
fn tables(directories: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for directory in directories {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if !name.starts_with("table-") && !name.starts_with("blob-") {
                continue;
            }
            // A merge may have just removed it.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.len() > 0 && metadata.blocks() * BLOCK_BYTES >= metadata.len() {
                paths.push(entry.path());
            }
        }
    }
    paths.sort();
    Ok(paths)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[values.len() / 2 - 1] + upper) / 2.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_occupy_their_blocks() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("inner")).unwrap();
        fs::write(directory.path().join("inner/file"), vec![1; 100_000]).unwrap();
        File::open(directory.path().join("inner/file")).unwrap().sync_all().unwrap();
        assert!(allocated_bytes(directory.path()) >= 98_304);
    }

    #[test]
    fn quotients_are_of_neighbours() {
        let directory = tempfile::tempdir().unwrap();
        write(&directory.path().join("table-1"), 4096);
        let mut raw = RawReads::of_tables(vec![directory.path().to_owned()], 1).unwrap().unwrap();
        raw.measure(Duration::from_millis(1)).unwrap();
        let sum = raw.best().unwrap().clone();
        let way = |method, ops_per_s: &[f64]| Way { method, sum: sum.clone(), ops_per_s: ops_per_s.to_vec() };
        raw.ways = vec![
            way(RawMethod::Uring, &[100.0, 200.0, 20.0, 100.0]),
            way(RawMethod::Threads, &[100.0, 100.0, 20.0, 100.0]),
        ];
        // With the first method 0.9, 1.0, 0.5; with the second 1.35, 1.83, 0.5.
        assert_eq!(raw.quotient(&[135.0, 110.0, 30.0]), Some(0.9));
        assert_eq!(raw.quotient(&[]), None);
    }

    #[test]
    fn raw_reads_are_of_tables() {
        let directory = tempfile::tempdir().unwrap();
        let directories = vec![directory.path().to_owned()];
        write(&directory.path().join("log-1"), 1 << 20);
        // Nothing but a hole.
        File::create(directory.path().join("table-1")).unwrap().set_len(1 << 20).unwrap();
        assert!(RawReads::of_tables(directories.clone(), 4).unwrap().is_none());
        write(&directory.path().join("table-2"), 3 << 20);
        write(&directory.path().join("blob-1"), 1 << 20);
        let mut raw = RawReads::of_tables(directories, 4).unwrap().unwrap();
        assert_eq!(raw.open().unwrap().bytes(), 4 << 20);
        raw.measure(Duration::from_millis(20)).unwrap();
        let first = raw.best().unwrap().operations();
        raw.measure(Duration::from_millis(20)).unwrap();
        assert!(first > 0 && raw.ways.iter().map(|way| way.sum.operations()).sum::<u64>() > first);
    }

    /// Turns open different files, and all of them in the course of time.
    #[test]
    fn turns_cover_all_tables() {
        let directory = tempfile::tempdir().unwrap();
        let tables = 2 * RAW_FILES_MAX + 1;
        for number in 0..tables {
            write(&directory.path().join(format!("table-{number:08}")), 4096);
        }
        let mut raw = RawReads::of_tables(vec![directory.path().to_owned()], 1).unwrap().unwrap();
        let mut bytes = 0;
        for turn in 1..=3 {
            raw.turns = turn;
            let opened = raw.open().unwrap().bytes();
            assert!(opened <= RAW_FILES_MAX as u64 * 4096);
            bytes += opened;
        }
        assert_eq!(bytes, tables as u64 * 4096);
    }

    /// Writes a file, and waits until the file system has given it space.
    fn write(path: &Path, len: usize) {
        fs::write(path, vec![1; len]).unwrap();
        File::open(path).unwrap().sync_all().unwrap();
    }

    #[test]
    fn a_raw_file_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("raw");
        let file = RawFile::create(path.clone(), 3_000_000).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 3 << 20);
        drop(file);
        assert!(!path.exists());
    }
}
