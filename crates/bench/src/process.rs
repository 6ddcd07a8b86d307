//! What the operating system says about this process: CPU time and resident memory.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time that all threads of this process have used, user and system.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Resident memory of this process in bytes; 0 where the system does not say.
pub fn resident_bytes() -> u64 {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return 0 };
    let kibibytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse::<u64>().ok());
    kibibytes.unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_uses_cpu_time() {
        let start = cpu_time();
        let mut sum = 0_u64;
        while cpu_time() == start {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(cpu_time() > start);
    }

    #[test]
    fn this_process_has_memory() {
        assert!(resident_bytes() > 100_000);
    }
}
