//! [`measure_device`]: all rates of a device, in a given time.

use std::io::Result;
use std::time::{Duration, Instant};

use super::{RandomReads, measure_reads, measure_sync_appends};
use crate::random::Random;
use crate::{ALIGNMENT, AlignedBuffer, File, OpenMode, Operation, Storage};

/// Numbers of reads in flight at which random reads are measured.
const DEPTHS: [usize; 5] = [1, 4, 16, 32, 64];
/// Size and number of the operations of sequential access.
const CHUNK_BYTES: usize = 1 << 20;
const CHUNKS_IN_FLIGHT: usize = 8;
/// Size of the file that synced writes overwrite cyclically.
const SYNCED_BYTES: u64 = 4 << 20;
/// Maximum size of the file that is written and read: larger than a device's own cache, smaller than what a small
/// machine can spare.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// What to measure with.
#[derive(Clone, Debug)]
pub struct DeviceProbe {
    /// Name of the file that is written, read and removed.
    pub name: String,
    /// Approximate duration of the whole measurement. A device that writes slowly gets a smaller file, not more time.
    pub duration: Duration,
    /// Maximum size of the file in bytes.
    pub file_bytes_max: u64,
}

impl DeviceProbe {
    /// A file of at most a gibibyte.
    pub fn new(name: &str, duration: Duration) -> Self {
        Self { name: name.to_owned(), duration, file_bytes_max: FILE_BYTES_MAX }
    }
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct DeviceRates {
    /// Reads in flight and 4 KiB random reads per second, ascending.
    pub reads: Vec<(usize, f64)>,
    /// Bytes written per second, sequentially, including the sync at the end.
    pub write_bytes_per_s: f64,
    /// Bytes read per second, sequentially.
    pub read_bytes_per_s: f64,
    /// Writes of 4 KiB into written space, each synced, per second.
    pub syncs_per_s: f64,
}

/// Measures the device under `storage`: a fifth of the time for writing the file, a tenth each for reading it
/// sequentially, for synced writes and for each of five numbers of random reads in flight.
///
/// The file is removed at the end, also after an error.
pub fn measure_device(storage: &dyn Storage, probe: &DeviceProbe) -> Result<DeviceRates> {
    let measured = measure(storage, probe);
    let is_there = storage.list()?.contains(&probe.name);
    if is_there {
        storage.remove(&probe.name)?;
    }
    measured
}

fn measure(storage: &dyn Storage, probe: &DeviceProbe) -> Result<DeviceRates> {
    let tenth = probe.duration / 10;
    let file = storage.open(&probe.name, OpenMode::Create)?;
    let chunks_max = (probe.file_bytes_max / CHUNK_BYTES as u64).max(1);
    let (chunks, write_bytes_per_s) = write(storage, &*file, chunks_max, tenth * 2)?;
    let read_bytes_per_s = in_a_row(storage, &*file, Operation::Read, chunks, tenth)?.1;
    let span_bytes = chunks * CHUNK_BYTES as u64;
    let mut reads = Vec::new();
    for depth in DEPTHS {
        let rate = measure_reads(storage, &*file, &RandomReads::new(depth, span_bytes, tenth))?;
        reads.push((depth, rate.ops_per_s()));
    }
    drop(file);
    storage.remove(&probe.name)?;
    let synced = measure_sync_appends(storage, &probe.name, ALIGNMENT, SYNCED_BYTES, tenth)?;
    Ok(DeviceRates { reads, write_bytes_per_s, read_bytes_per_s, syncs_per_s: synced.ops_per_s() })
}

fn write(storage: &dyn Storage, file: &dyn File, chunks_max: u64, limit: Duration) -> Result<(u64, f64)> {
    let start = Instant::now();
    let (chunks, _) = in_a_row(storage, file, Operation::Write, chunks_max, limit)?;
    file.sync()?;
    Ok((chunks, per_second(chunks, start)))
}

/// Reads or writes chunk after chunk until `limit` has passed or there are no more. Returns their number and the bytes
/// per second.
fn in_a_row(
    storage: &dyn Storage,
    file: &dyn File,
    operation: Operation,
    chunks_max: u64,
    limit: Duration,
) -> Result<(u64, f64)> {
    let mut pipeline = storage.pipeline(CHUNKS_IN_FLIGHT);
    let start = Instant::now();
    let mut next = 0;
    let mut done = 0;
    while next < chunks_max.min(CHUNKS_IN_FLIGHT as u64) {
        let buffer = noise(next);
        pipeline.submit(operation, file, next * CHUNK_BYTES as u64, buffer, next);
        next += 1;
    }
    while let Some(completed) = pipeline.wait() {
        completed.result?;
        done += 1;
        if next < chunks_max && start.elapsed() < limit {
            pipeline.submit(operation, file, next * CHUNK_BYTES as u64, completed.buffer, next);
            next += 1;
        }
    }
    Ok((done, per_second(done, start)))
}

/// Content that does not compress, so that no layer below can save work.
fn noise(seed: u64) -> AlignedBuffer {
    let mut buffer = AlignedBuffer::with_len(CHUNK_BYTES);
    let mut random = Random::new(seed);
    buffer.chunks_mut(8).for_each(|word| word.copy_from_slice(&random.next().to_le_bytes()[..word.len()]));
    buffer
}

fn per_second(chunks: u64, start: Instant) -> f64 {
    (chunks * CHUNK_BYTES as u64) as f64 / start.elapsed().as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimulatedStorage;

    #[test]
    fn all_rates_are_measured_and_nothing_is_left() {
        let storage = SimulatedStorage::new(1);
        let mut probe = DeviceProbe::new("probe", Duration::from_millis(20));
        probe.file_bytes_max = 3 << 20;
        let rates = measure_device(&storage, &probe).unwrap();
        assert_eq!(rates.reads.iter().map(|(depth, _)| *depth).collect::<Vec<_>>(), DEPTHS);
        let rest = [rates.write_bytes_per_s, rates.read_bytes_per_s, rates.syncs_per_s];
        assert!(rates.reads.iter().map(|(_, rate)| *rate).chain(rest).all(|rate| rate > 0.0));
        assert!(storage.list().unwrap().is_empty());
    }
}
