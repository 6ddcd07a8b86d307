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
use alluvium_io::calibrate::{RandomReads, Rate, RawMethod, measure_raw_reads};

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

/// A file of a given size from which raw pages are read; removed when dropped. Reads of a store are compared with reads
/// of such a file of the same size, since a device serves a small span faster than a large one.
#[derive(Debug)]
pub struct RawFile {
    path: PathBuf,
    bytes: u64,
}

/// Maximum bytes that are written for a comparison.
const SPAN_BYTES_MAX: u64 = 8 << 30;
const CHUNK_BYTES: usize = 1 << 20;

impl RawFile {
    /// Writes a file of about `bytes` incompressible bytes at `path`, through to the device.
    pub fn create(path: PathBuf, bytes: u64) -> io::Result<Self> {
        let chunks = bytes.clamp(1, SPAN_BYTES_MAX).div_ceil(CHUNK_BYTES as u64);
        let mut file = File::create(&path)?;
        let raw = Self { path, bytes: chunks * CHUNK_BYTES as u64 };
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

    fn reads(&self, in_flight: usize, duration: Duration, seed: u64, method: RawMethod) -> io::Result<Rate> {
        let reads = RandomReads { seed, ..RandomReads::new(in_flight, self.bytes, duration) };
        measure_raw_reads(&self.path, &reads, method)
    }
}

impl Drop for RawFile {
    fn drop(&mut self) {
        // A file that remains does no harm, and a destructor cannot report an error.
        let _ = fs::remove_file(&self.path);
    }
}

/// Reads of random 4 KiB pages of a [`RawFile`] by each method that the system offers, in turns with the operations
/// with which they are compared.
#[derive(Debug)]
pub struct RawReads {
    file: RawFile,
    in_flight: usize,
    turns: u64,
    ways: Vec<Way>,
}

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
    /// Writes the file of about `bytes` bytes; `in_flight` reads will be in flight at once.
    pub fn new(path: PathBuf, bytes: u64, in_flight: usize) -> io::Result<Self> {
        Ok(Self { file: RawFile::create(path, bytes)?, in_flight, turns: 0, ways: Vec::new() })
    }

    /// Reads for `duration` by each method.
    pub fn measure(&mut self, duration: Duration) -> io::Result<()> {
        self.turns += 1;
        for method in [RawMethod::Uring, RawMethod::Threads] {
            let rate = match self.file.reads(self.in_flight, duration, self.turns, method) {
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
        let mut raw = RawReads::new(directory.path().join("raw"), 1, 1).unwrap();
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
    fn raw_reads_happen_and_leave_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let mut raw = RawReads::new(directory.path().join("raw"), 3_000_000, 4).unwrap();
        assert_eq!(fs::metadata(directory.path().join("raw")).unwrap().len(), 3 << 20);
        raw.measure(Duration::from_millis(20)).unwrap();
        let first = raw.best().unwrap().operations();
        raw.measure(Duration::from_millis(20)).unwrap();
        assert!(first > 0 && raw.ways.iter().map(|way| way.sum.operations()).sum::<u64>() > first);
        drop(raw);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
