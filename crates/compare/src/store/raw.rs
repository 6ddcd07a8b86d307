//! The device itself: what any engine can reach at most.

use std::path::Path;
use std::time::Duration;

use alluvium_bench::BenchError;
use alluvium_bench::device::RawFile;
use alluvium_io::calibrate::{RandomReads, RawFiles, RawMethod, measure_raw_reads};

/// A file for reads of the device.
pub struct Raw {
    opened: RawFiles,
    bytes: u64,
    /// Removed with this.
    _file: RawFile,
}

impl Raw {
    /// Writes a file of about `bytes` bytes in a directory.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(directory: &Path, bytes: u64) -> Result<Self, BenchError> {
        let path = directory.join("raw");
        let file = RawFile::create(path.clone(), bytes)?;
        Ok(Self { opened: RawFiles::open([path])?, bytes, _file: file })
    }

    /// Bytes per second of reads of `read_bytes` at random places, by a number of threads.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn bytes_per_s(&self, read_bytes: usize, threads: usize, time: Duration) -> Result<f64, BenchError> {
        let reads = RandomReads { page_bytes: read_bytes, ..RandomReads::new(threads, self.bytes, time) };
        let rate = measure_raw_reads(&self.opened, &reads, RawMethod::Threads)?;
        Ok(rate.ops_per_s() * read_bytes as f64)
    }
}
