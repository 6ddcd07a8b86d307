//! Figures of the process as a whole.

use rustix::time::{ClockId, clock_gettime};

/// Bytes of the process in memory; `None` where the system does not say.
pub(super) fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some((kib << 10) as f64)
}

/// Seconds that the processors have spent on it.
pub(super) fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
