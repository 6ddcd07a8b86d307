//! What the system says about this process; zeros where it says nothing.

use std::fs;

/// Clock ticks of `/proc` in a second, on all systems of today.
const TICKS_PER_SECOND: f64 = 100.0;

/// Bytes of memory that the process holds.
pub(super) fn resident_bytes() -> u64 {
    status_bytes("VmRSS:")
}

/// The most that they have been.
pub(super) fn peak_resident_bytes() -> u64 {
    status_bytes("VmHWM:")
}

fn status_bytes(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// Seconds of processor time that the process has taken: its own, and those of the system for it.
pub(super) fn processor_seconds() -> (f64, f64) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may have spaces; user and system time are the 12th and 13th number after it.
    let (_, numbers) = stat.rsplit_once(')').unwrap_or_default();
    let mut times = numbers.split_whitespace().skip(11).map_while(|number| number.parse::<f64>().ok());
    let mut next = || times.next().unwrap_or(0.0) / TICKS_PER_SECOND;
    (next(), next())
}
