//! A cache in a file that survives beside one in memory: what gets and sets take, what flushes cost, and how long an
//! opening takes.
//!
//! The items fill the cache once; then keys are requested by popularity, and every value found is compared with the
//! key. The requests are drawn before the clock starts, so that only their sequential loads are counted. With
//! `--survive pmem` there is also a cache with a write cache in front of the file. Ordinary memory stands for
//! persistent memory: the processor's instructions are the same, the memory is faster.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::items::wrong;
use super::options::{CacheOptions, Flush, Loss};
use super::requests::{self, IS_SET};
use super::speed::refused;
use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::report::Report;
use alluvium_cache::{Builder, Cache, Codec, Opened, Survive, SurvivingBuilder, SurvivingCache};

const SKEW: f64 = 0.99;
const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 100;
/// Bytes besides key and value that are assumed for each item when the keys are counted.
const OVERHEAD_BYTES: u64 = 64;
/// The share of the memory that a write cache has, unless it is given.
const WRITE_CACHE_SHARE: u64 = 64;
/// How often the file is opened again.
const OPENINGS: usize = 5;

/// Runs all caches.
///
/// # Errors
/// [`BenchError`]: a wrong value, or settings that are refused.
pub fn run(options: &CacheOptions, report: &mut Report) -> Result<(), BenchError> {
    let value_bytes = options.value_size.unwrap_or(VALUE_BYTES).max(8);
    let payload = KEY_BYTES + value_bytes;
    let keys = options
        .items
        .unwrap_or(options.memory / (payload as u64 + OVERHEAD_BYTES))
        .clamp(1, u64::from(IS_SET));
    let builder = Cache::builder().memory_limit(options.memory as usize).payload_bytes_mean(payload);
    let ratios = options.get_ratio.map_or_else(|| vec![95, 50, 2], |ratio| vec![ratio]);
    let skew = options.skew.unwrap_or(SKEW);
    let mut numbers = requests::numbers(keys, skew, options.requests, options.seed)?;
    // Neighbours in popularity are no neighbours in order of their first set.
    numbers.iter_mut().for_each(|number| *number = ((u64::from(*number) * 0x9e37_79b1 + 17) % keys) as u32);
    let work = Work { options, numbers, keys, value_bytes };
    let plain = builder.clone().build().map_err(refused)?;
    let plain = work.run(
        &ratios,
        |key, value| plain.set(key, value).is_ok(),
        |key, value| plain.get_with(key, |item| item.value == value),
    )?;
    for (ratio, ns) in ratios.iter().zip(&plain) {
        report.add(work.measurement("plain", *ratio, *ns, *ns))?;
    }
    let all = [Flush::Needed, Flush::WriteCache, Flush::EverySet];
    let is_meant = |flush: &Flush| {
        options.flush.is_none_or(|meant| meant == *flush)
            && (options.survive == Loss::Pmem || *flush != Flush::WriteCache)
    };
    for flush in all.into_iter().filter(is_meant) {
        let file = TemporaryFile::new(options);
        let cache = file.open(builder.clone(), options.survive, flush)?;
        let before = cache.stats();
        let surviving = work.run(
            &ratios,
            |key, value| cache.set(key, value).is_ok(),
            |key, value| cache.get_with(key, |item| item.value == value),
        )?;
        let stats = cache.stats();
        let openings = file.reopen(cache, &builder, options.survive, flush)?;
        let name = match flush {
            Flush::Needed => "surviving",
            Flush::WriteCache => "with-write-cache",
            Flush::EverySet => "flush-every-set",
        };
        for ((ratio, ns), plain) in ratios.iter().zip(&surviving).zip(&plain) {
            let measurement = work
                .measurement(name, *ratio, *ns, *plain)
                .metric("file_bytes", stats.file_bytes)
                .metric("flushes_all", stats.flushes - before.flushes)
                .metric("overwritten_all", stats.overwritten)
                .metric("hot_sets_all", stats.hot_sets)
                .metric("evicted_by_index", stats.evicted_by_index)
                .metric("cleanings", stats.cleanings)
                .metric("open_ms", openings);
            report.add(measurement)?;
        }
    }
    Ok(())
}

struct Work<'a> {
    options: &'a CacheOptions,
    /// Numbers of the requested items.
    numbers: Vec<u32>,
    keys: u64,
    value_bytes: usize,
}

impl Work<'_> {
    /// Sets all keys, then requests by each ratio; returns the nanoseconds of a request.
    fn run(
        &self,
        ratios: &[u8],
        set: impl Fn(&[u8], &[u8]) -> bool,
        get: impl Fn(&[u8], &[u8]) -> Option<bool>,
    ) -> Result<Vec<f64>, BenchError> {
        let refused = || BenchError::Usage("an item is too large for the cache".to_owned());
        let mut value = vec![0; self.value_bytes];
        for number in 0..self.keys {
            fill(number, &mut value);
            if !set(&key(number), &value) {
                return Err(refused());
            }
        }
        let mut taken = Vec::new();
        for &ratio in ratios {
            let mut requests = self.numbers.clone();
            requests::mark(&mut requests, ratio, self.options.seed);
            let began = Instant::now();
            for &request in &requests {
                let number = u64::from(request & !IS_SET);
                fill(number, &mut value);
                if request & IS_SET == 0 {
                    if get(&key(number), &value) == Some(false) {
                        return Err(wrong(number));
                    }
                } else if !set(&key(number), &value) {
                    return Err(refused());
                }
            }
            taken.push(began.elapsed().as_nanos() as f64 / self.options.requests.max(1) as f64);
        }
        Ok(taken)
    }

    fn measurement(&self, case: &str, ratio: u8, ns: f64, plain_ns: f64) -> Measurement {
        Measurement::new("cache", case)
            .config("mode", "nvm")
            .config("survive", format!("{:?}", self.options.survive).to_lowercase())
            .config("get_percent", ratio)
            .config("value_bytes", self.value_bytes)
            .config("keys", self.keys)
            .config("memory_bytes", self.options.memory)
            .metric("ns_per_request", ns)
            .metric("time_ratio_to_plain", ns / plain_ns.max(1.0))
    }
}

/// A file that is removed at the end.
pub(super) struct TemporaryFile {
    path: PathBuf,
    write_cache_bytes: usize,
}

impl TemporaryFile {
    pub(super) fn new(options: &CacheOptions) -> Self {
        let usual = Path::new("/dev/shm");
        let directory = match &options.file_dir {
            Some(directory) => directory.clone(),
            None if options.survive != Loss::Power && usual.is_dir() => usual.to_path_buf(),
            None => std::env::temp_dir(),
        };
        let path = directory.join(format!("alluvium-bench-{}", std::process::id()));
        Self {
            path,
            write_cache_bytes: options.write_cache.unwrap_or(options.memory / WRITE_CACHE_SHARE) as usize,
        }
    }

    fn builder(&self, builder: Builder, loss: Loss, flush: Flush) -> SurvivingBuilder {
        let survive = match loss {
            Loss::Process => Survive::Process,
            Loss::Pmem => Survive::Pmem,
            Loss::Power => Survive::Power,
        };
        let write_cache = if flush == Flush::WriteCache { self.write_cache_bytes } else { 0 };
        let builder = builder.survive(&self.path, survive).reset(true).write_cache_bytes(write_cache);
        builder.flushes_each_set(flush == Flush::EverySet)
    }

    /// A cache in the file that compresses, or does not.
    pub(super) fn open_compressed(
        &self,
        builder: Builder,
        loss: Loss,
        codec: Option<Codec>,
    ) -> Result<SurvivingCache, BenchError> {
        let builder = self.builder(builder, loss, Flush::Needed);
        let builder = codec.into_iter().fold(builder, SurvivingBuilder::compressed);
        builder.open().map_err(|error| BenchError::Usage(error.to_string()))
    }

    fn open(&self, builder: Builder, loss: Loss, flush: Flush) -> Result<SurvivingCache, BenchError> {
        let opened = self.builder(builder, loss, flush).open();
        opened.map_err(|error| BenchError::Usage(error.to_string()))
    }

    /// Closes and opens the cache several times; returns the milliseconds of the median opening.
    fn reopen(
        &self,
        cache: SurvivingCache,
        builder: &Builder,
        loss: Loss,
        flush: Flush,
    ) -> Result<f64, BenchError> {
        let mut taken = Vec::new();
        let mut open = Some(cache);
        for _ in 0..OPENINGS {
            drop(open.take());
            let began = Instant::now();
            let cache = self.open(builder.clone(), loss, flush)?;
            taken.push(began.elapsed().as_secs_f64() * 1000.0);
            if cache.opened() != Opened::Complete {
                return Err(BenchError::Usage("the content was not found again".to_owned()));
            }
            open = Some(cache);
        }
        taken.sort_by(f64::total_cmp);
        Ok(taken[taken.len() / 2])
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Fills a value with what it has to be for this key.
fn fill(number: u64, value: &mut [u8]) {
    value[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
}

fn key(number: u64) -> [u8; KEY_BYTES] {
    let mut key = *b"key-000000000000";
    key[8..].copy_from_slice(&number.to_le_bytes());
    key
}
