//! A cache with a compressed zone beside one without, in the same memory: how many items each holds, how many gets
//! miss, and what a get from the zone takes.
//!
//! Keys are requested by popularity, a miss is followed by a set, and every value found is compared with the one that
//! was set.

use std::time::Instant;

use alluvium_cache::{Builder, Cache, Compressed, PartitionStats};
use alluvium_io::ProcessMemory;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng};

use super::documents::Maker;
use super::items::wrong;
use super::options::{CacheOptions, TraceKind};
use super::requests::Zipf;
use super::speed::refused;
use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::report::Report;

const SKEW: f64 = 0.99;
/// Keys for each item for which the plain cache has room.
const KEYS_PER_ITEM: u64 = 4;
/// One in this many gets is timed by itself.
const GETS_PER_SAMPLE: usize = 64;
const KEY_BYTES: usize = 16;

/// Runs both caches.
///
/// # Errors
/// [`BenchError`]: a wrong value, or settings that are refused.
pub fn run(options: &CacheOptions, report: &mut Report) -> Result<(), BenchError> {
    let maker = Maker::new(options.values.clone())?;
    let payload = KEY_BYTES + maker.bytes_mean();
    let plain = Cache::builder().memory_limit(options.memory as usize).payload_bytes_mean(payload);
    let keys = options.items.unwrap_or(options.memory / (payload as u64 + 26) * KEYS_PER_ITEM).max(1);
    let zipf = Zipf::new(keys, options.skew.unwrap_or(SKEW));
    let trace = Trace { options, maker: &maker, zipf: &zipf, keys };
    let compressed =
        plain.clone().compressed(Compressed { codec: options.codec.codec(), ..Compressed::default() });
    let plain = trace.run(plain)?;
    let zone = trace.run(compressed)?;
    for (case, measured) in [("plain", &plain), ("compressed", &zone)] {
        report.add(trace.measurement(case, payload, measured, &plain))?;
    }
    Ok(())
}

struct Trace<'a> {
    options: &'a CacheOptions,
    maker: &'a Maker,
    zipf: &'a Zipf,
    keys: u64,
}

/// What a cache did.
struct Measured {
    stats: PartitionStats,
    gets: u64,
    misses: u64,
    hot_hits: u64,
    zone_hits: u64,
    ns_per_request: f64,
    zone_hit_ns: Vec<u64>,
    resident_bytes_max: u64,
    memory_limit: u64,
}

impl Trace<'_> {
    /// Loads all keys, then requests them twice as often as the options say; the first half warms up.
    fn run(&self, builder: Builder) -> Result<Measured, BenchError> {
        let before = resident_bytes();
        let cache = builder.build().map_err(refused)?;
        let mut resident_bytes_max = 0;
        let mut note =
            || resident_bytes_max = resident_bytes_max.max(resident_bytes().saturating_sub(before));
        let mut value = Vec::new();
        for number in 0..self.keys {
            self.maker.make(number, &mut value);
            cache.set(&key(number), &value).map_err(|error| BenchError::Usage(error.to_string()))?;
        }
        note();
        let mut random = SmallRng::seed_from_u64(self.options.seed);
        let mut zone_hit_ns = Vec::new();
        let requests = self.options.requests;
        let mut start = cache.stats().total();
        let (mut misses, mut busy_ns) = (0, 0_u64);
        for request in 0..2 * requests {
            if request == requests {
                (start, misses, busy_ns) = (cache.stats().total(), 0, 0);
                zone_hit_ns.clear();
            }
            if request % (requests / 8).max(1) == 0 {
                note();
            }
            let number = self.draw(request, &mut random);
            self.maker.make(number, &mut value);
            let is_sample = request.is_multiple_of(GETS_PER_SAMPLE);
            let hits = if is_sample { cache.stats().total().zone.hits } else { 0 };
            let began = Instant::now();
            let found = cache.get_with(&key(number), |item| item.value == value);
            let ns = began.elapsed().as_nanos() as u64;
            busy_ns += ns;
            match found {
                Some(true) => {
                    if is_sample && cache.stats().total().zone.hits > hits {
                        zone_hit_ns.push(ns);
                    }
                }
                Some(false) => return Err(wrong(number)),
                None => {
                    misses += 1;
                    let began = Instant::now();
                    cache.set(&key(number), &value).map_err(|error| BenchError::Usage(error.to_string()))?;
                    busy_ns += began.elapsed().as_nanos() as u64;
                }
            }
        }
        note();
        let stats = cache.stats().total();
        let zone_hits = stats.zone.hits - start.zone.hits;
        Ok(Measured {
            stats,
            gets: requests as u64,
            misses,
            hot_hits: stats.hits - start.hits - zone_hits,
            zone_hits,
            ns_per_request: busy_ns as f64 / requests.max(1) as f64,
            zone_hit_ns,
            resident_bytes_max,
            memory_limit: self.options.memory,
        })
    }

    /// The number of the next key. In a trace that switches, all keys are alike in the third quarter.
    fn draw(&self, request: usize, random: &mut SmallRng) -> u64 {
        let quarter = request * 4 / (2 * self.options.requests).max(1);
        if self.options.trace == Some(TraceKind::Switch) && quarter == 2 {
            return random.random_range(0..self.keys);
        }
        // Popularity is independent of the order in which keys were set.
        (u64::from(self.zipf.draw(random)) * 0x9e37_79b1 + 17) % self.keys
    }

    fn measurement(&self, case: &str, payload: usize, measured: &Measured, plain: &Measured) -> Measurement {
        let Measured { stats, gets, misses, hot_hits, zone_hits, .. } = measured;
        let zone = &stats.zone;
        let per_mib =
            |measured: &Measured| measured.stats.items as f64 / (measured.memory_limit >> 20).max(1) as f64;
        let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
        let mut zone_hit_ns = measured.zone_hit_ns.clone();
        zone_hit_ns.sort_unstable();
        let headers = zone.blocks * 24 + zone.items * 2 + zone.directory_bytes;
        Measurement::new("cache", case)
            .config("mode", "zexpander")
            .config("trace", format!("{:?}", self.options.trace.unwrap_or(TraceKind::Zipf)).to_lowercase())
            .config("codec", self.options.codec.codec().to_string())
            .config("keys", self.keys)
            .config("payload_bytes_mean", payload)
            .config("memory_bytes", measured.memory_limit)
            .metric("items_per_mib", per_mib(measured))
            .metric("items_ratio_to_cache", per_mib(measured) / per_mib(plain))
            .metric("miss_ratio", share(*misses, *gets))
            .metric("misses_ratio_to_cache", share(*misses, plain.misses))
            .metric("n_hit_share", share(*hot_hits, hot_hits + zone_hits))
            .metric("n_zone_share", share(stats.log_bytes_max, measured.memory_limit))
            .metric("compression_ratio", zone.compression_ratio())
            .metric("metadata_bytes_per_item", share(headers, zone.items))
            .metric("decompressions_per_get", share(*zone_hits, *gets))
            .metric("z_hit_us", zone_hit_ns.get(zone_hit_ns.len() / 2).map(|&ns| ns as f64 / 1000.0))
            .metric("ns_per_request", measured.ns_per_request)
            .metric("resident_bytes_max", measured.resident_bytes_max)
    }
}

fn key(number: u64) -> [u8; KEY_BYTES] {
    let mut key = *b"key-000000000000";
    let mut rest = number;
    for digit in key.iter_mut().rev().take(12) {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

fn resident_bytes() -> u64 {
    ProcessMemory::now().map_or(0, |memory| memory.resident_bytes)
}
