//! What zExpander's figures share: a cache with a compressed zone beside one without, in the same memory.
//!
//! The thesis compares with memcached, or with a cache of its own that has no zone. The cache without a zone is ours
//! here, which already holds more items than memcached in the same memory. Items are generated JSON documents, LZ4
//! compresses them as in the thesis, and the hot zone should serve nine tenths of the gets, as there. The clock of the
//! caches runs ten times as fast, so that they divide their memory within seconds: they look once a second.

use std::sync::Arc;
use std::time::{Duration, Instant};

use alluvium_bench::BenchError;
use alluvium_bench::cache::documents::Documents;
use alluvium_bench::cache::speed::refused;
use alluvium_cache::{Builder, Cache, Clock, Codec, Compressed};

use super::Scale;
use super::replay::{AfterMiss, Mix, Values, draw_requests, load, replay};

/// Percent of the hits that the hot zone should serve in the thesis.
pub const HOT_PERCENT: u8 = 90;
/// The skew of the trace of YCSB.
pub const YCSB_SKEW: f64 = 0.99;
/// Gigabytes of the items of the trace of YCSB.
pub const YCSB_GB: f64 = 128.0;
/// Memory of the cache as a share of these: 60 GB.
pub const YCSB_SHARE: f64 = 60.0 / YCSB_GB;
/// Requests that warm a cache up, by key.
const WARMING: usize = 2;
/// Items that are loaded at most, by those for which there is room without a zone.
const LOADED: u64 = 3;
/// How much faster time passes for the caches.
pub const HASTE: u32 = 10;

/// The items.
pub struct Data {
    pub keys: u32,
    pub values: Values,
    pub payload: usize,
    seed: u64,
}

impl Data {
    pub fn new(scale: &Scale) -> Result<Self, BenchError> {
        let keys = (scale.simulated_keys_max / 20).clamp(40_000, 1 << 25) as u32;
        let values = Values::documents(Documents::Places, keys)?;
        Ok(Self { keys, payload: values.payload_bytes_mean(), values, seed: scale.seed })
    }

    /// Bytes of all keys and values.
    pub fn bytes(&self) -> f64 {
        self.keys as f64 * self.payload as f64
    }

    /// The two caches of this memory, without and with a zone.
    pub fn caches(&self, memory: u64, hot_percent: u8) -> Result<[(&'static str, Cache); 2], BenchError> {
        let plain = self.builder(memory).clock(Arc::new(QuickClock(Instant::now())));
        let compressed = plain.clone().compressed(Compressed { codec: Codec::Lz4, hot_percent });
        Ok([("plain", plain.build().map_err(refused)?), ("compressed", compressed.build().map_err(refused)?)])
    }

    /// A cache of this memory without a zone.
    pub fn builder(&self, memory: u64) -> Builder {
        Cache::builder().memory_limit(memory as usize).payload_bytes_mean(self.payload)
    }

    /// Number of the most popular items that are loaded into a cache of this memory.
    pub fn loaded(&self, memory: u64) -> u32 {
        u64::from(self.keys).min(LOADED * memory / self.payload as u64) as u32
    }

    /// Loads a cache and requests items until their places have settled.
    pub fn warm_up(&self, cache: &Cache, memory: u64, skew: f64, mix: Mix) -> Result<(), BenchError> {
        load(cache, &self.values, self.loaded(memory))?;
        let requests = draw_requests(self.keys, skew, mix, WARMING * self.keys as usize, self.seed ^ 1)?;
        replay(cache, &self.values, &requests, AfterMiss::Set)?;
        Ok(())
    }
}

/// See the module.
#[derive(Debug)]
struct QuickClock(Instant);

impl Clock for QuickClock {
    fn monotonic(&self) -> Duration {
        self.0.elapsed() * HASTE
    }

    fn unix(&self) -> Duration {
        self.monotonic()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration / HASTE);
    }
}
