//! What the device can do: the rates against which the engine's are judged.
//!
//! [`measure_raw_reads`] reads from the device in the most direct ways there are, [`measure_reads`] through a
//! [`Storage`]; the second must come close to the first. A virtual disk drifts, so both belong in the same run, in
//! turns. Each measurement takes the requested time and writes nothing but its own file.

mod device;
#[cfg(unix)]
mod raw;

use std::io::{Error, ErrorKind, Result};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::random::Random;
use crate::{ALIGNMENT, AlignedBuffer, File, OpenMode, Operation, Storage};
pub use device::{DeviceProbe, DeviceRates, measure_device};
#[cfg(unix)]
pub use raw::{RawFiles, RawMethod, measure_raw_reads};

/// How to read: pages of `page_bytes` at uniformly random page numbers of the first `span_bytes` of a file.
#[derive(Clone, Copy, Debug)]
pub struct RandomReads {
    /// Reads that are under way at any time.
    pub in_flight: usize,
    /// Size of a read, a multiple of [`ALIGNMENT`].
    pub page_bytes: usize,
    /// The part of the file to read from.
    pub span_bytes: u64,
    /// How long to read.
    pub duration: Duration,
    /// Where the page numbers come from.
    pub seed: u64,
}

impl RandomReads {
    /// 4 KiB reads of the first `span_bytes`.
    pub fn new(in_flight: usize, span_bytes: u64, duration: Duration) -> Self {
        Self { in_flight, page_bytes: ALIGNMENT, span_bytes, duration, seed: 1 }
    }

    fn check(&self) -> Result<()> {
        let is_sound = self.in_flight > 0
            && self.page_bytes > 0
            && self.page_bytes.is_multiple_of(ALIGNMENT)
            && self.pages() > 0;
        if is_sound {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::InvalidInput, format!("cannot measure {self:?}")))
        }
    }

    fn pages(&self) -> u64 {
        self.span_bytes / self.page_bytes as u64
    }

    fn offset(&self, random: &mut Random) -> u64 {
        random.below(self.pages()) * self.page_bytes as u64
    }
}

/// Number of operations, the time in which they were done, and the latency of each.
#[derive(Clone, Debug)]
pub struct Rate {
    /// From the first start to the last end.
    pub elapsed: Duration,
    /// Latencies in nanoseconds, one entry for each operation.
    pub latency_ns: Histogram<u64>,
}

impl Rate {
    fn new() -> Result<Self> {
        // Up to a minute, with two significant digits: 1 % of a latency is far below its noise.
        let latency_ns = Histogram::new_with_bounds(1, 60_000_000_000, 2).map_err(Error::other)?;
        Ok(Self { elapsed: Duration::ZERO, latency_ns })
    }

    fn record(&mut self, latency: Duration) {
        self.latency_ns.saturating_record(latency.as_nanos().min(u128::from(u64::MAX)) as u64);
    }

    /// Counts the operations of another turn as well.
    pub fn add(&mut self, other: &Self) {
        self.elapsed += other.elapsed;
        // Both have the same constant bounds, which is all that adding requires.
        self.latency_ns.add(&other.latency_ns).expect("histograms of equal bounds add up");
    }

    /// Number of operations.
    pub fn operations(&self) -> u64 {
        self.latency_ns.len()
    }

    /// Operations per second.
    pub fn ops_per_s(&self) -> f64 {
        self.operations() as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// The latency in microseconds that `quantile` (0 to 1) of the operations do not exceed.
    pub fn latency_us(&self, quantile: f64) -> f64 {
        self.latency_ns.value_at_quantile(quantile) as f64 / 1000.0
    }
}

/// Random reads of `file` through a pipeline of its `storage`.
pub fn measure_reads(storage: &dyn Storage, file: &dyn File, reads: &RandomReads) -> Result<Rate> {
    reads.check()?;
    let mut random = Random::new(reads.seed);
    let mut rate = Rate::new()?;
    let mut pipeline = storage.pipeline(reads.in_flight);
    let start = Instant::now();
    let mut starts = vec![start; reads.in_flight];
    for (token, started) in starts.iter_mut().enumerate() {
        *started = Instant::now();
        let buffer = AlignedBuffer::with_len(reads.page_bytes);
        pipeline.submit(Operation::Read, file, reads.offset(&mut random), buffer, token as u64);
    }
    while let Some(done) = pipeline.wait() {
        expect_page(done.result?, reads.page_bytes)?;
        let now = Instant::now();
        rate.elapsed = now - start;
        let token = done.token as usize;
        rate.record(now - starts[token]);
        if rate.elapsed < reads.duration {
            starts[token] = now;
            pipeline.submit(Operation::Read, file, reads.offset(&mut random), done.buffer, done.token);
        }
    }
    Ok(rate)
}

/// Random reads of `file` in batches of `batch` by [`Storage::read_batch`]; the latency recorded for each read is that
/// of its batch.
pub fn measure_read_batches(
    storage: &dyn Storage,
    file: &dyn File,
    batch: usize,
    reads: &RandomReads,
) -> Result<Rate> {
    reads.check()?;
    let mut random = Random::new(reads.seed);
    let mut rate = Rate::new()?;
    let mut memory = AlignedBuffer::with_len(batch * reads.page_bytes);
    let start = Instant::now();
    while rate.elapsed < reads.duration && batch > 0 {
        let begun = Instant::now();
        let mut requests: Vec<_> = memory
            .chunks_mut(reads.page_bytes)
            .map(|buffer| crate::ReadRequest {
                file,
                offset: reads.offset(&mut random),
                buffer,
                result: Ok(0),
            })
            .collect();
        storage.read_batch(&mut requests);
        let now = Instant::now();
        for request in requests {
            expect_page(request.result?, reads.page_bytes)?;
            rate.record(now - begun);
        }
        rate.elapsed = now - start;
    }
    Ok(rate)
}

fn expect_page(got: usize, wanted: usize) -> Result<()> {
    if got == wanted {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::UnexpectedEof,
        format!("the file ends inside the span to read: {got} of {wanted} bytes"),
    ))
}

/// Writes of `record_bytes` (a multiple of [`ALIGNMENT`]), each followed by a sync, one at a time, cyclically in a file
/// `name` of `span_bytes`. The file is created, written once and synced before the clock starts, and removed
/// afterwards. Measures what group commit into recycled log space can reach with one thread.
pub fn measure_sync_appends(
    storage: &dyn Storage,
    name: &str,
    record_bytes: usize,
    span_bytes: u64,
    duration: Duration,
) -> Result<Rate> {
    if record_bytes == 0 || !record_bytes.is_multiple_of(ALIGNMENT) || span_bytes < record_bytes as u64 {
        return Err(Error::new(ErrorKind::InvalidInput, format!("{record_bytes} bytes of {span_bytes}")));
    }
    let file = storage.open(name, OpenMode::Create)?;
    let measured = sync_appends(&*file, record_bytes, span_bytes, duration);
    storage.remove(name)?;
    measured
}

fn sync_appends(file: &dyn File, record_bytes: usize, span_bytes: u64, duration: Duration) -> Result<Rate> {
    let mut record = AlignedBuffer::with_len(record_bytes);
    let mut random = Random::new(span_bytes);
    // Neither compressible nor zero, whatever layer is below.
    record.chunks_mut(8).for_each(|word| word.copy_from_slice(&random.next().to_le_bytes()[..word.len()]));
    let records = span_bytes / record_bytes as u64;
    for position in 0..records {
        file.write_at(&record, position * record_bytes as u64)?;
    }
    file.sync()?;
    let mut rate = Rate::new()?;
    let start = Instant::now();
    let mut turn = 0;
    while rate.elapsed < duration {
        let begun = Instant::now();
        file.write_at(&record, turn % records * record_bytes as u64)?;
        file.sync()?;
        let now = Instant::now();
        rate.record(now - begun);
        rate.elapsed = now - start;
        turn += 1;
    }
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimulatedStorage;

    #[test]
    fn every_operation_is_counted_once() {
        let storage = SimulatedStorage::new(1);
        let file = storage.open("f", OpenMode::Create).unwrap();
        file.write_at(&[1; 1 << 16], 0).unwrap();
        let reads = RandomReads::new(4, 1 << 16, Duration::from_millis(2));
        let rate = measure_reads(&storage, &*file, &reads).unwrap();
        assert_eq!(rate.operations(), storage.read_count());
        let before = storage.read_count();
        let rate = measure_read_batches(&storage, &*file, 8, &reads).unwrap();
        assert_eq!(rate.operations(), storage.read_count() - before);
        let rate = measure_sync_appends(&storage, "g", 4096, 1 << 15, Duration::from_millis(2)).unwrap();
        assert!(rate.operations() > 0 && rate.ops_per_s() > 0.0 && rate.latency_us(0.5) > 0.0);
        assert_eq!(storage.list().unwrap(), ["f"]);
    }

    #[test]
    fn senseless_requests_are_refused() {
        let storage = SimulatedStorage::new(1);
        let file = storage.open("f", OpenMode::Create).unwrap();
        let short = RandomReads::new(1, 4095, Duration::ZERO);
        assert_eq!(measure_reads(&storage, &*file, &short).unwrap_err().kind(), ErrorKind::InvalidInput);
        let beyond = RandomReads::new(1, 8192, Duration::ZERO);
        assert_eq!(measure_reads(&storage, &*file, &beyond).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert!(measure_sync_appends(&storage, "g", 100, 4096, Duration::ZERO).is_err());
    }
}
