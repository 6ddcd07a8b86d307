//! `bench large`: items of 0 B to 64 MiB together, overwritten several times, every value verified. Measures how much
//! more of the disk is ever taken than the live items need, and what is written and read for them.

use std::io::Read;
use std::path::PathBuf;
use std::time::Instant;

use alluvium::{Db, Durability, Keyspace, Metadata, VALUE_BYTES_MAX};

use crate::device::{Device, allocated_bytes};
use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::random::Random;
use crate::report::Report;
use crate::work_directory::{WorkDirectory, default_parent};

/// Options of `bench large`.
#[derive(Clone, Debug, clap::Args)]
pub struct LargeOptions {
    /// Bytes to load
    #[arg(long, default_value = "2GiB", value_parser = alluvium_base::units::parse_bytes)]
    pub bytes: u64,
    /// Overwrite until this many times the loaded bytes have been put
    #[arg(long, default_value_t = 3.0)]
    pub overwrite: f64,
    /// Largest value; sizes are log-uniform from 0 up, so each power of two has as many bytes as the others
    #[arg(long, default_value = "64MiB", value_parser = alluvium_base::units::parse_bytes)]
    pub value_size_max: u64,
    /// Seed of sizes, values and the order of overwrites
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Directory for the database, which gets a subdirectory `alluvium-bench-large`. The default is Cargo's
    /// `target` if the current directory has one, else the system's temporary directory
    #[arg(long, default_value_os_t = default_parent())]
    pub dir: PathBuf,
}

const SUBDIRECTORY: &str = "alluvium-bench-large";
/// Values of at least this size are written and read as streams.
const STREAM_BYTES_MIN: usize = 1 << 20;
/// Items of up to this size need no blob file.
const INLINE_BYTES_MAX: u64 = 2039;

struct LargeBench<'a> {
    options: &'a LargeOptions,
    db: Db,
    keyspace: Keyspace,
    directory: WorkDirectory,
    device: Device,
    /// How often each item was written.
    rounds: Vec<u64>,
    live_bytes: u64,
    /// Maximum bytes on disk per live byte, sampled after every put of the overwrites.
    space_max: f64,
}

/// Loads, overwrites and reads.
///
/// # Errors
/// A value that is not the last one written is a wrong answer.
pub fn run(options: &LargeOptions, report: &mut Report) -> Result<(), BenchError> {
    if options.bytes == 0 || options.value_size_max > VALUE_BYTES_MAX as u64 {
        return Err(BenchError::Usage(
            "--bytes must be at least 1, --value-size-max at most 64MiB".to_owned(),
        ));
    }
    let directory = report.directories().create(&options.dir, SUBDIRECTORY)?;
    let db = Db::builder(directory.path()).durability(Durability::Buffered).open()?;
    let keyspace = db.keyspace("bench")?;
    let device = Device::of(directory.path())?;
    let (rounds, live_bytes, space_max) = (Vec::new(), 0, 0.0);
    let mut bench = LargeBench { options, db, keyspace, directory, device, rounds, live_bytes, space_max };
    report.add(bench.load()?)?;
    report.add(bench.overwrite()?)?;
    report.add(bench.get()?)?;
    let LargeBench { db, keyspace, directory, .. } = bench;
    drop(keyspace);
    db.close()?;
    Ok(directory.remove()?)
}

impl LargeBench<'_> {
    fn value_len(&self, item: u64, round: u64) -> usize {
        let mut random = Random::new(self.options.seed ^ item, round << 1);
        let share = random.next_u64() as f64 / u64::MAX as f64;
        ((self.options.value_size_max as f64 + 1.0).powf(share) - 1.0) as usize
    }

    fn value(&self, item: u64, round: u64, len: usize) -> Vec<u8> {
        let mut value = vec![0; len];
        Random::new(self.options.seed ^ item, round << 1 | 1).fill(&mut value);
        value
    }

    fn put(&mut self, item: u64) -> Result<u64, BenchError> {
        let round = self.rounds[item as usize];
        let len = self.value_len(item, round);
        let value = self.value(item, round, len);
        if len >= STREAM_BYTES_MIN {
            self.keyspace.insert_reader(item.to_le_bytes(), len, &value[..], Metadata::default())?;
        } else {
            self.keyspace.insert(item.to_le_bytes(), value)?;
        }
        if round > 0 {
            self.live_bytes -= 8 + self.value_len(item, round - 1) as u64;
        }
        self.live_bytes += 8 + len as u64;
        self.rounds[item as usize] += 1;
        Ok(8 + len as u64)
    }

    fn load(&mut self) -> Result<Measurement, BenchError> {
        let start = Instant::now();
        let written_before = self.device.settled_counters();
        while self.live_bytes < self.options.bytes {
            self.rounds.push(0);
            self.put(self.rounds.len() as u64 - 1)?;
        }
        let bytes = self.live_bytes;
        self.measure("load", start, bytes, written_before)
    }

    fn overwrite(&mut self) -> Result<Measurement, BenchError> {
        let start = Instant::now();
        let written_before = self.device.settled_counters();
        let wanted = (self.options.overwrite * self.options.bytes as f64) as u64;
        let mut random = Random::new(self.options.seed, u64::MAX);
        let mut bytes = 0;
        while bytes < wanted {
            bytes += self.put(random.below(self.rounds.len() as u64))?;
            self.space_max = self.space_max.max(self.space());
        }
        self.db.persist()?;
        let measurement = self.measure("overwrite", start, bytes, written_before)?;
        Ok(measurement.metric("space_amplification_max", self.space_max))
    }

    fn space(&self) -> f64 {
        allocated_bytes(self.directory.path()) as f64 / self.live_bytes as f64
    }

    fn measure(
        &self,
        case: &str,
        start: Instant,
        bytes: u64,
        written_before: Option<alluvium_io::DeviceCounters>,
    ) -> Result<Measurement, BenchError> {
        let elapsed = start.elapsed().as_secs_f64();
        self.db.persist()?;
        let stats = self.db.stats();
        let mut measurement = Measurement::new("large", case)
            .config("bytes", self.options.bytes)
            .config("value_bytes_max", self.options.value_size_max)
            .metric("items", self.rounds.len())
            .metric("bytes_put", bytes)
            .metric("mib_per_s", bytes as f64 / elapsed / (1 << 20) as f64)
            .metric("live_bytes", self.live_bytes)
            .metric("space_amplification", self.space())
            .metric("blob_files", stats.blobs.files)
            .metric("blob_bytes_relocated", stats.traffic.blob_bytes_relocated);
        if let (Some(before), Some(now)) = (written_before, self.device.settled_counters()) {
            let written = now.since(&before).written_bytes as f64;
            measurement = measurement.metric("write_amplification", written / bytes as f64);
        }
        Ok(measurement)
    }

    /// Reads every item once, from tables: first small ones, then large ones.
    fn get(&mut self) -> Result<Measurement, BenchError> {
        self.db.flush()?;
        self.db.wait_idle()?;
        let is_large = |item: &u64| {
            let len = self.value_len(*item, self.rounds[*item as usize] - 1) as u64;
            8 + len + 6 > INLINE_BYTES_MAX
        };
        let (large, small): (Vec<u64>, Vec<u64>) = (0..self.rounds.len() as u64).partition(is_large);
        let start = Instant::now();
        let reads = |bench: &Self, items: &[u64]| -> Result<(f64, f64), BenchError> {
            let before = bench.db.stats().traffic;
            items.iter().try_for_each(|&item| bench.check(item))?;
            let now = bench.db.stats().traffic;
            let each = |count: u64| count as f64 / items.len().max(1) as f64;
            Ok((each(now.page_reads - before.page_reads), each(now.blob_reads - before.blob_reads)))
        };
        let (small_pages, small_blobs) = reads(self, &small)?;
        let device_before = self.device.settled_counters();
        let (large_pages, large_blobs) = reads(self, &large)?;
        let mut measurement = Measurement::new("large", "get")
            .config("bytes", self.options.bytes)
            .config("value_bytes_max", self.options.value_size_max)
            .metric("small_items", small.len())
            .metric("large_items", large.len())
            .metric("mib_per_s", self.live_bytes as f64 / start.elapsed().as_secs_f64() / (1 << 20) as f64)
            .metric("page_reads_per_small_get", small_pages)
            .metric("blob_reads_per_small_get", small_blobs)
            .metric("page_reads_per_large_get", large_pages)
            .metric("blob_reads_per_large_get", large_blobs);
        if let (Some(before), Some(now)) = (device_before, self.device.settled_counters()) {
            let device = now.since(&before);
            measurement = measurement
                .metric("device_reads_per_large_get", device.reads as f64 / large.len().max(1) as f64)
                .metric("device_bytes_per_live_byte", device.read_bytes as f64 / self.live_bytes as f64);
        }
        Ok(measurement)
    }

    fn check(&self, item: u64) -> Result<(), BenchError> {
        let round = self.rounds[item as usize] - 1;
        let expected = self.value(item, round, self.value_len(item, round));
        let key = item.to_le_bytes();
        let found = if expected.len() >= STREAM_BYTES_MIN {
            let mut found = Vec::with_capacity(expected.len());
            let reader = self.keyspace.get_reader(key)?;
            reader.map(|mut reader| reader.read_to_end(&mut found).map(|_| found)).transpose()?
        } else {
            self.keyspace.get(key)?
        };
        if found.as_ref() != Some(&expected) {
            let found = found.map(|found| found.len());
            let what = format!("item {item} of round {round}: {found:?} bytes, not {}", expected.len());
            return Err(BenchError::WrongAnswer(what));
        }
        Ok(())
    }
}

/// A small run, so that the benchmark keeps working.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_verifies_every_value_and_cleans_up() {
        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path();
        let options = LargeOptions {
            bytes: 2 << 20,
            overwrite: 1.0,
            value_size_max: 200 << 10,
            seed: 1,
            dir: dir.to_owned(),
        };
        let mut report = Report::new(false);
        run(&options, &mut report).unwrap();
        assert_eq!(report.measurements().len(), 3);
        let get = &report.measurements()[2].metrics;
        assert_eq!(get["blob_reads_per_small_get"], 0.0);
        assert_eq!(get["blob_reads_per_large_get"], 1.0);
        assert!(!dir.join(SUBDIRECTORY).exists());
    }
}
