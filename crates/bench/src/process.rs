//! CPU time and memory of this process, as the operating system reports them.

use std::time::Duration;

use alluvium_io::ProcessMemory;
use rustix::time::{ClockId, clock_gettime};

/// CPU time that all threads of this process have used, user and system.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// CPU time that the calling thread has used, user and system.
pub fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Resident bytes of this process; 0 if the system does not say.
pub fn resident_bytes() -> u64 {
    ProcessMemory::now().map_or(0, |memory| memory.resident_bytes)
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
}
