//! What the operating system counted: the device's requests and bytes, and the memory of the process.
//!
//! Write amplification and reads per get are measured here and not by counters of our own, which would only repeat
//! our beliefs. The device's counters are for the whole machine (let nothing else run); those per process overcount
//! mapped writes.

use std::path::Path;

/// The kernel counts in sectors of this size, whatever the sector size of the device.
const SECTOR_BYTES: u64 = 512;

/// Requests and bytes of a block device since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Read requests completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Write requests completed.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Discard requests completed.
    pub discards: u64,
    /// Flushes of the device's cache.
    pub flushes: u64,
}

impl DeviceCounters {
    /// Returns the counters of the device that holds `path`. Returns `None` on systems other than Linux, and on file
    /// systems without their own block device (tmpfs, overlay, network).
    pub fn of(path: impl AsRef<Path>) -> Option<Self> {
        stat_of(path.as_ref()).and_then(|text| Self::parse(&text))
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        self.combine(earlier, u64::wrapping_sub)
    }

    /// The sum of what was counted in this and in another stretch of time.
    pub fn plus(&self, other: &Self) -> Self {
        self.combine(other, u64::wrapping_add)
    }

    fn combine(&self, other: &Self, by: fn(u64, u64) -> u64) -> Self {
        Self {
            reads: by(self.reads, other.reads),
            read_bytes: by(self.read_bytes, other.read_bytes),
            writes: by(self.writes, other.writes),
            written_bytes: by(self.written_bytes, other.written_bytes),
            discards: by(self.discards, other.discards),
            flushes: by(self.flushes, other.flushes),
        }
    }

    /// From the text of `/sys/dev/block/MAJOR:MINOR/stat` (fields as in the kernel's `Documentation/block/stat.rst`).
    /// Old kernels have fewer fields; what is missing counts as 0.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<u64> = text.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
        let optional = |index: usize| fields.get(index).copied().unwrap_or(0);
        Some(Self {
            reads: *fields.first()?,
            read_bytes: fields.get(2)?.wrapping_mul(SECTOR_BYTES),
            writes: *fields.get(4)?,
            written_bytes: fields.get(6)?.wrapping_mul(SECTOR_BYTES),
            discards: optional(11),
            flushes: optional(15),
        })
    }
}

#[cfg(target_os = "linux")]
fn stat_of(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let device = std::fs::metadata(path).ok()?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()
}

#[cfg(not(target_os = "linux"))]
fn stat_of(_path: &Path) -> Option<String> {
    None
}

/// Bytes of the machine's memory; `None` on systems other than Linux.
pub fn machine_memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Memory of this process as the kernel counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Resident bytes now.
    pub resident_bytes: u64,
    /// Maximum number of resident bytes so far.
    pub resident_bytes_peak: u64,
    /// The resident bytes that are neither files nor shared: heap, stacks and own mappings.
    pub anonymous_bytes: u64,
}

impl ProcessMemory {
    /// Returns the current figures, or `None` on systems other than Linux.
    pub fn now() -> Option<Self> {
        // Elsewhere the file does not exist.
        std::fs::read_to_string("/proc/self/status").ok().and_then(|text| Self::parse(&text))
    }

    /// Maximum number of bytes that the program itself can take in addition to its anonymous memory: all of its code
    /// and that of its libraries, more of which becomes resident as it is used, and the part of their constants that is
    /// resident now. The remaining constants are usually tables for debuggers and unwinding. `None` on systems other
    /// than Linux.
    pub fn program_bytes() -> Option<u64> {
        std::fs::read_to_string("/proc/self/smaps").ok().map(|text| Self::mapped_files_bytes(&text))
    }

    fn mapped_files_bytes(smaps: &str) -> u64 {
        let (mut sum, mut is_file, mut is_constant) = (0_u64, false, false);
        for line in smaps.lines() {
            let mut fields = line.split_ascii_whitespace();
            let name = fields.next().unwrap_or_default();
            if name.contains('-') {
                is_constant = fields.next().is_some_and(|rights| rights.starts_with("r--"));
                is_file = fields.nth(3).is_some_and(|path| path.starts_with('/'));
                continue;
            }
            let kilobytes = fields.next().and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
            let bytes = kilobytes.saturating_mul(1024);
            match name {
                "Size:" if is_file && !is_constant => sum = sum.saturating_add(bytes),
                "Rss:" if is_file && is_constant => sum = sum.saturating_add(bytes),
                // Counted as anonymous memory.
                "Anonymous:" if is_file => sum = sum.saturating_sub(bytes),
                _ => {}
            }
        }
        sum
    }

    fn parse(text: &str) -> Option<Self> {
        let bytes = |name: &str| -> Option<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
        };
        Some(Self {
            resident_bytes: bytes("VmRSS")?,
            resident_bytes_peak: bytes("VmHWM")?,
            anonymous_bytes: bytes("RssAnon").unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_fields_of_a_device_are_told_apart() {
        let text = "   52436     6632 12385706    17498    11896    31110 10745944     9898        0    14776    \
                    28681     4029        0  8581752     1275      429        8\n";
        let counters = DeviceCounters::parse(text).unwrap();
        let expected = DeviceCounters {
            reads: 52436,
            read_bytes: 12385706 * 512,
            writes: 11896,
            written_bytes: 10745944 * 512,
            discards: 4029,
            flushes: 429,
        };
        assert_eq!(counters, expected);
        assert_eq!(counters.since(&counters), DeviceCounters::default());
        assert!(DeviceCounters::parse("1 2 3 4 5 6 7 8 9 10 11").is_some());
        assert_eq!(DeviceCounters::parse("1 2 3"), None);
    }

    #[test]
    fn the_fields_of_a_process_are_told_apart() {
        let text = "Name:\tx\nVmHWM:\t    3000 kB\nVmRSS:\t    2000 kB\nRssAnon:\t     500 kB\n";
        let expected = ProcessMemory {
            resident_bytes: 2_048_000,
            resident_bytes_peak: 3_072_000,
            anonymous_bytes: 512_000,
        };
        assert_eq!(ProcessMemory::parse(text), Some(expected));
        assert_eq!(ProcessMemory::parse("VmRSS:\tmany kB\n"), None);
    }

    #[test]
    fn mapped_files_are_told_from_other_mappings() {
        let text = "55fdc4246000-55fdc425f000 r-xp 00001000 fe:00 1234 /usr/bin/program with spaces\n\
                    Size:                100 kB\nRss:                  40 kB\nAnonymous:             4 kB\n\
                    7f2541a17000-7f2541a45000 rw-p 00000000 00:00 0 \n\
                    Size:                184 kB\nRss:                 184 kB\nAnonymous:           184 kB\n\
                    7f2541a45000-7f2541a55000 r--p 00000000 fe:00 77   /lib/libc.so.6\n\
                    Size:                 64 kB\nRss:                  12 kB\nAnonymous:             8 kB\n\
                    7ffc7e001000-7ffc7e022000 rw-p 00000000 00:00 0 [stack]\n\
                    Size:                132 kB\nRss:                  12 kB\n";
        assert_eq!(ProcessMemory::mapped_files_bytes(text), (100 - 4 + 12 - 8) << 10);
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text: String) {
            let _ = (DeviceCounters::parse(&text), ProcessMemory::parse(&text));
            let _ = ProcessMemory::mapped_files_bytes(&text);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_occupies_memory() {
        let memory = ProcessMemory::now().unwrap();
        assert!(memory.resident_bytes > 0 && memory.resident_bytes_peak > 0);
        assert!(ProcessMemory::program_bytes().unwrap() > 1 << 20);
    }
}
