//! Disk space after background work is done.

use std::path::Path;
use std::time::{Duration, Instant};

use alluvium::Db;

use crate::device::allocated_bytes;
use crate::error::BenchError;

/// The space of a database without work is watched for this long: some of it is given back only then.
const WATCHED: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);

/// Waits for background work, and returns the fewest bytes that `directory` occupies within some seconds after it.
pub fn settled_bytes(db: &Db, directory: &Path) -> Result<u64, BenchError> {
    db.wait_idle()?;
    let start = Instant::now();
    let mut bytes = allocated_bytes(directory);
    while start.elapsed() < WATCHED {
        std::thread::sleep(PAUSE);
        bytes = bytes.min(allocated_bytes(directory));
    }
    Ok(bytes)
}
