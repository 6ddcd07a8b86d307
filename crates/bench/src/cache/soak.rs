//! Random operations of several threads for a given time: sizes, expiries, resizes. At the end the counters must be
//! consistent.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use alluvium_cache::{Builder, Cache, SetOptions};

use super::options::CacheOptions;
use super::speed::refused;
use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::random::{Random, mix};
use crate::report::Report;

const KEYS: u64 = 200_000;
const THREADS: usize = 3;
const MEMORY_BYTES: [usize; 2] = [8 << 20, 32 << 20];
/// Where items are stored, and the maximum bytes of their values: in logs, or small enough for cells, in which case
/// they move between both all the time.
const LAYOUTS: [(&str, u64); 2] = [("logs", 20_000), ("cells", 160)];
/// Interval at which the resizing thread resizes.
const RESIZE_INTERVAL: Duration = Duration::from_millis(300);

/// Runs for `seconds`, half of the time for each layout.
pub fn run(options: &CacheOptions, seconds: u64, report: &mut Report) -> Result<(), BenchError> {
    for (layout, value_bytes_max) in LAYOUTS {
        let builder = match layout {
            "cells" => Cache::builder().payload_bytes_fixed(128),
            _ => Cache::builder().payload_bytes_mean(400),
        };
        let builder =
            builder.memory_limit(MEMORY_BYTES[1]).partitions(2).eviction(options.eviction.eviction());
        let duration = Duration::from_secs(seconds) / LAYOUTS.len() as u32;
        let measurement = soak(builder, value_bytes_max, duration, options)?;
        report.add(measurement.config("layout", layout))?;
    }
    Ok(())
}

fn soak(
    builder: Builder,
    value_bytes_max: u64,
    duration: Duration,
    options: &CacheOptions,
) -> Result<Measurement, BenchError> {
    let cache = builder.build().map_err(refused)?;
    let ends_at = Instant::now() + duration;
    let is_wrong = AtomicBool::new(false);
    let (operations, gets, resizes) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS as u64 {
            let (cache, is_wrong, operations, gets) = (&cache, &is_wrong, &operations, &gets);
            let mut random = Random::new(options.seed, thread);
            scope.spawn(move || {
                let mut value = Vec::new();
                while Instant::now() < ends_at && !is_wrong.load(Ordering::Relaxed) {
                    for _ in 0..1000 {
                        let asked = operate(cache, &mut random, value_bytes_max, &mut value, is_wrong);
                        gets.fetch_add(asked, Ordering::Relaxed);
                    }
                    operations.fetch_add(1000, Ordering::Relaxed);
                }
            });
        }
        let mut random = Random::new(options.seed, THREADS as u64);
        while Instant::now() < ends_at {
            std::thread::sleep(RESIZE_INTERVAL);
            let [least, most] = MEMORY_BYTES;
            let limit = least + random.below((most - least) as u64) as usize;
            if cache.resize(limit).is_ok() {
                resizes.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    if is_wrong.load(Ordering::Relaxed) {
        return Err(BenchError::WrongAnswer("a value was found under a key that never had it".to_owned()));
    }
    balance(&cache, gets.load(Ordering::Relaxed))?;
    let total = cache.stats().total();
    Ok(Measurement::new("cache", "soak")
        .config("seconds", duration.as_secs_f64())
        .config("threads", THREADS)
        .config("eviction", format!("{:?}", options.eviction))
        .metric("operations", operations.load(Ordering::Relaxed))
        .metric("resizes", resizes.load(Ordering::Relaxed))
        .metric("items", total.items)
        .metric("inline_items", total.inline_items)
        .metric("evicted", total.evicted)
        .metric("evicted_by_index", total.evicted_by_index)
        .metric("expired", total.expired))
}

/// One random operation; returns the number of gets for which it counts.
fn operate(
    cache: &Cache,
    random: &mut Random,
    value_bytes_max: u64,
    value: &mut Vec<u8>,
    is_wrong: &AtomicBool,
) -> u64 {
    // Low numbers are requested more often.
    let bound = random.below(KEYS) + 1;
    let number = random.below(bound);
    let key = mix(number).to_le_bytes();
    match random.below(100) {
        0..60 => {
            if cache.get_into(&key, value) && !is_of(value, number) {
                is_wrong.store(true, Ordering::Relaxed);
            }
            1
        }
        60..96 => {
            let bound = random.below(value_bytes_max) + 1;
            let len = 16 + random.below(bound) as usize;
            make(value, number, len, random.next_u64());
            let options = SetOptions {
                time_to_live: (random.below(3) == 0).then(|| Duration::from_millis(random.below(2000))),
                flags: random.below(2) as u32,
            };
            // The largest items do not fit in the smallest partitions.
            let _ = cache.set_with(&key, value, options);
            0
        }
        96..99 => {
            cache.remove(&key);
            0
        }
        _ => {
            let _ = cache.touch(&key, Some(Duration::from_millis(500)));
            0
        }
    }
}

/// A value that identifies its key and reveals torn reads.
fn make(value: &mut Vec<u8>, number: u64, len: usize, stamp: u64) {
    value.clear();
    value.extend_from_slice(&number.to_le_bytes());
    value.extend_from_slice(&stamp.to_le_bytes());
    value.resize(len, stamp as u8);
}

fn is_of(value: &[u8], number: u64) -> bool {
    value.len() >= 16
        && value[..8] == number.to_le_bytes()
        && value[16..].iter().all(|&byte| byte == value[8])
}

/// Every item that was inserted is present or left in a counted way; every get was a hit or a miss.
fn balance(cache: &Cache, gets: u64) -> Result<(), BenchError> {
    cache.sweep();
    let present = cache.iter().count() as u64;
    let total = cache.stats().total();
    let left = total.removed + total.evicted + total.evicted_by_index + total.expired;
    // Items may have expired between the sweep and the count.
    let is_balanced = total.inserted == left + total.items
        && present <= total.items
        && total.items - present <= KEYS / 100
        && total.hits + total.misses == gets;
    if is_balanced {
        return Ok(());
    }
    Err(BenchError::WrongAnswer(format!("{present} items, {gets} gets, but the counters are {total:?}")))
}
