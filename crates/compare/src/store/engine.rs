//! What the compared engines share: how they are opened, written and read.

use std::fmt::Display;
use std::io;
use std::time::{Duration, Instant};

use alluvium::Workload;
use alluvium_bench::BenchError;

use super::items::Key;

/// What an engine is opened with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Alluvium's memory limit, and the block cache of engines that have one.
    pub memory_bytes: u64,
    /// Alluvium's row cache, and the block cache of engines that have one, if it is smaller than all the memory.
    pub cache_bytes: Option<u64>,
    /// Whether a put returns only when it is on the device.
    pub is_durable: bool,
    /// Bytes of the values to come.
    #[cfg_attr(not(feature = "stores"), expect(dead_code, reason = "only fjall stores large values apart"))]
    pub value_bytes: usize,
    /// Bytes of the keys' prefixes if groups of items with one prefix are scanned.
    pub prefix_bytes: Option<usize>,
    /// What Alluvium knows about the work, and the bytes of memory for each item that may find it.
    pub workload: Option<(Workload, f64)>,
}

impl Settings {
    /// Engines with this memory, for values of this length.
    pub fn new(memory_bytes: u64, value_bytes: usize) -> Self {
        let (cache_bytes, prefix_bytes, workload) = (None, None, None);
        Self { memory_bytes, cache_bytes, is_durable: false, value_bytes, prefix_bytes, workload }
    }

    /// Bytes of a peer's block cache.
    pub fn block_cache_bytes(&self) -> u64 {
        self.cache_bytes.unwrap_or(self.memory_bytes)
    }
}

/// A compared engine: one map from keys to values in its own directory.
pub trait Engine: Sync {
    /// A reader for one thread. It may see the state of the moment in which it was made.
    fn reader(&self) -> Result<Box<dyn Reader + '_>, BenchError>;

    /// Puts an item: by itself, not as part of a batch.
    fn put(&self, key: &Key, value: &[u8]) -> Result<(), BenchError>;

    /// Puts many items in the way that is fastest.
    fn put_all(&self, items: &[(Key, Vec<u8>)]) -> Result<(), BenchError> {
        items.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// Finds the item of `key`, calls `look` with its value and removes it. Returns whether there was one.
    fn take(&self, key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError>;

    /// The same for the head of a queue, the item with the smallest key: the engine may find it by its order, or by
    /// the key, which the consumer of a queue can count.
    fn take_head(&self, key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError>;

    /// Returns once all items are on the device and no background work is left.
    fn settle(&self) -> Result<(), BenchError>;

    /// Number of read requests that gets have made so far, if the engine counts them.
    fn read_requests(&self) -> Option<u64> {
        None
    }

    /// Number of items in a cache of single items, if the engine has one.
    fn cached_items(&self) -> Option<u64> {
        None
    }
}

/// Reads of one thread.
pub trait Reader {
    /// Calls `look` with the value of `key`, in the way that copies least unless the engine is Alluvium, which returns
    /// a value of its own. Returns whether there is one.
    fn get(&mut self, key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError>;

    /// The same, and Alluvium lends its value, too.
    fn get_lent(&mut self, key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        self.get(key, look)
    }

    /// Calls `visit` with all items whose keys start with `prefix`.
    fn scan(&mut self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), BenchError>;
}

/// A peer's error.
pub fn failed(engine: &str, error: impl Display) -> BenchError {
    BenchError::Io(io::Error::other(format!("{engine}: {error}")))
}

const POLL: Duration = Duration::from_millis(20);
/// Number of polls in a row that find no work before an engine counts as idle: one job can lead to the next.
const IDLE_POLLS: u32 = 5;
/// Maximum time of settling. An engine whose background work has failed may report work for ever.
const SETTLE_MAX: Duration = Duration::from_secs(900);

/// Waits until an engine has no work any more.
///
/// # Errors
/// If that takes a quarter of an hour.
pub fn wait_while(engine: &str, is_busy: impl Fn() -> bool) -> Result<(), BenchError> {
    let (start, mut idle) = (Instant::now(), 0);
    while idle < IDLE_POLLS {
        if start.elapsed() > SETTLE_MAX {
            return Err(failed(engine, "its background work does not end"));
        }
        std::thread::sleep(POLL);
        idle = if is_busy() { 0 } else { idle + 1 };
    }
    Ok(())
}
