//! Processor time of the threads of a server.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::error::BenchError;

/// Processor time that the workers of a server have used.
pub(super) fn processor_time(process: u32) -> Result<Duration, BenchError> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let directory = thread?.path();
        if is_worker(&directory) {
            // A thread may have ended meanwhile.
            let text = fs::read_to_string(directory.join("schedstat")).unwrap_or_default();
            let first = text.split_whitespace().next().and_then(|first| first.parse::<u64>().ok());
            nanoseconds += first.unwrap_or(0);
        }
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Whether the name of a thread is `serve-` and a number.
fn is_worker(directory: &Path) -> bool {
    let name = fs::read_to_string(directory.join("comm")).unwrap_or_default();
    let number = name.trim_end().strip_prefix("serve-");
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}
