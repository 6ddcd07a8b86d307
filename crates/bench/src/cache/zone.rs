//! A cache with a compressed zone beside one without, in the same memory: how many items each holds, how many gets
//! miss, and what a get from the zone takes.
//!
//! Keys are requested by popularity, a miss is followed by a set, and every value found is compared with the one that
//! was set.

use std::time::Instant;

use alluvium_cache::{Cache, Compressed, PartitionStats, ZoneStats};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng};

use super::documents::{KEY_BYTES, Maker, key};
use super::hot_hits;
use super::items::wrong;
use super::memcached::Memcached;
use super::options::{CacheOptions, TraceKind};
use super::requests::Zipf;
use super::speed::refused;
use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::process::resident_bytes;
use crate::report::Report;

const SKEW: f64 = 0.99;
/// Keys for each item for which the plain cache has room.
const KEYS_PER_ITEM: u64 = 4;
/// One in this many gets is timed by itself.
const GETS_PER_SAMPLE: usize = 64;
const MIB: f64 = (1 << 20) as f64;

/// Runs both caches.
///
/// # Errors
/// [`BenchError`]: a wrong value, or settings that are refused.
pub fn run(options: &CacheOptions, report: &mut Report) -> Result<(), BenchError> {
    let maker = Maker::new(options.values.clone())?;
    let payload = KEY_BYTES + maker.bytes_mean();
    let keys = options.items.unwrap_or(options.memory / (payload as u64 + 26) * KEYS_PER_ITEM).max(1);
    let zipf = Zipf::new(keys, options.skew.unwrap_or(SKEW));
    let trace = Trace { options, maker: &maker, zipf: &zipf, keys };
    let mut cases = Vec::new();
    let mut memory = options.memory;
    if let Some(program) = &options.with_memcached {
        let memcached = trace.run(&mut Memcached::start(program, memory)?)?;
        memory = memcached.memory;
        cases.push(("memcached", memcached));
    }
    let plain = Cache::builder().memory_limit(memory as usize).payload_bytes_mean(payload);
    let compressed = plain
        .clone()
        .compressed(Compressed { codec: options.zone_codec(), hot_percent: options.hot_percent });
    let mut ours = Vec::new();
    for (case, builder) in [("plain", plain), ("compressed", compressed)] {
        let resident_bytes_before = resident_bytes();
        let cache = builder.build().map_err(refused)?;
        let mut subject = Ours { cache, memory, resident_bytes_before };
        cases.push((case, trace.run(&mut subject)?));
        ours.push(subject.cache);
    }
    let hot_hits = hot_hits::measure(&maker, &ours[0], &ours[1], (0..keys).map(|rank| trace.key_of(rank)))?;
    for (case, measured) in &cases {
        let hot_hit_ns = hot_hits.as_ref().and_then(|hits| match *case {
            "plain" => Some(hits.plain_ns),
            "compressed" => Some(hits.compressed_ns),
            _ => None,
        });
        let ratio = hot_hits.as_ref().filter(|_| *case == "compressed").map(|hits| hits.ratio);
        let measurement = trace.measurement(case, payload, measured, &cases);
        report.add(measurement.metric("hot_hit_ns", hot_hit_ns).metric("hot_hit_ratio_to_cache", ratio))?;
    }
    Ok(())
}

/// Bytes of a zone's headers and directory.
pub fn metadata_bytes(zone: &ZoneStats) -> u64 {
    zone.blocks * 24 + zone.items * 2 + zone.directory_bytes
}

/// What is measured.
trait Subject {
    /// Whether the item of `key` is `value`; `None` if the key has none.
    fn get(&mut self, key: &[u8], value: &[u8]) -> Result<Option<bool>, BenchError>;
    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError>;
    /// As [`set`](Self::set), before [`end_load`](Self::end_load) at the latest.
    fn load(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError>;
    fn end_load(&mut self) -> Result<(), BenchError>;
    fn stats(&mut self) -> Result<PartitionStats, BenchError>;
    /// Resident bytes of items and all that belongs to them.
    fn resident_bytes(&self) -> u64;
    /// Bytes that it was allowed, if there is a limit of that.
    fn memory(&self) -> Option<u64>;
}

struct Ours {
    cache: Cache,
    memory: u64,
    resident_bytes_before: u64,
}

impl Subject for Ours {
    fn get(&mut self, key: &[u8], value: &[u8]) -> Result<Option<bool>, BenchError> {
        Ok(self.cache.get_with(key, |item| item.value == value))
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        self.cache.set(key, value).map(drop).map_err(|error| BenchError::Usage(error.to_string()))
    }

    fn load(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        self.set(key, value)
    }

    fn end_load(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    fn stats(&mut self) -> Result<PartitionStats, BenchError> {
        Ok(self.cache.stats().total())
    }

    fn resident_bytes(&self) -> u64 {
        resident_bytes().saturating_sub(self.resident_bytes_before)
    }

    fn memory(&self) -> Option<u64> {
        Some(self.memory)
    }
}

impl Subject for Memcached {
    fn get(&mut self, key: &[u8], value: &[u8]) -> Result<Option<bool>, BenchError> {
        Memcached::get(self, key, value)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        Memcached::set(self, key, value)
    }

    fn load(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        self.set_later(key, value)
    }

    fn end_load(&mut self) -> Result<(), BenchError> {
        self.finish_sets()
    }

    fn stats(&mut self) -> Result<PartitionStats, BenchError> {
        Ok(PartitionStats { items: self.items()?, ..PartitionStats::default() })
    }

    fn resident_bytes(&self) -> u64 {
        Memcached::resident_bytes(self)
    }

    fn memory(&self) -> Option<u64> {
        None
    }
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
    zone_hits: u64,
    ns_per_request: f64,
    zone_hit_ns: Vec<u64>,
    resident_bytes_max: u64,
    /// Bytes that it was allowed, or took.
    memory: u64,
}

impl Trace<'_> {
    /// Loads all keys, then requests them twice as often as the options say; the first half warms up.
    fn run(&self, subject: &mut impl Subject) -> Result<Measured, BenchError> {
        let mut resident_bytes_max = 0;
        let mut value = Vec::new();
        for number in 0..self.keys {
            self.maker.make(number, &mut value);
            subject.load(&key(number), &value)?;
        }
        subject.end_load()?;
        resident_bytes_max = subject.resident_bytes().max(resident_bytes_max);
        let mut random = SmallRng::seed_from_u64(self.options.seed);
        let mut zone_hit_ns = Vec::new();
        let requests = self.options.requests;
        let mut start = PartitionStats::default();
        let (mut misses, mut busy_ns) = (0, 0_u64);
        for request in 0..2 * requests {
            if request == requests {
                start = subject.stats()?;
                (misses, busy_ns) = (0, 0);
                zone_hit_ns.clear();
            }
            if request % (requests / 8).max(1) == 0 {
                resident_bytes_max = subject.resident_bytes().max(resident_bytes_max);
            }
            let number = self.draw(request, &mut random);
            self.maker.make(number, &mut value);
            let is_sample = subject.memory().is_some() && request.is_multiple_of(GETS_PER_SAMPLE);
            let hits = if is_sample { subject.stats()?.zone.hits } else { 0 };
            let began = Instant::now();
            let found = subject.get(&key(number), &value)?;
            let ns = began.elapsed().as_nanos() as u64;
            busy_ns += ns;
            match found {
                Some(true) => {
                    if is_sample && subject.stats()?.zone.hits > hits {
                        zone_hit_ns.push(ns);
                    }
                }
                Some(false) => return Err(wrong(number)),
                None => {
                    misses += 1;
                    let began = Instant::now();
                    subject.set(&key(number), &value)?;
                    busy_ns += began.elapsed().as_nanos() as u64;
                }
            }
        }
        resident_bytes_max = subject.resident_bytes().max(resident_bytes_max);
        let stats = subject.stats()?;
        Ok(Measured {
            stats,
            gets: requests as u64,
            misses,
            zone_hits: stats.zone.hits - start.zone.hits,
            ns_per_request: busy_ns as f64 / requests.max(1) as f64,
            zone_hit_ns,
            resident_bytes_max,
            memory: subject.memory().unwrap_or(resident_bytes_max),
        })
    }

    /// The number of the next key. In a trace that switches, all keys are alike in the third quarter.
    fn draw(&self, request: usize, random: &mut SmallRng) -> u64 {
        let quarter = request * 4 / (2 * self.options.requests).max(1);
        if self.options.trace == Some(TraceKind::Switch) && quarter == 2 {
            return random.random_range(0..self.keys);
        }
        self.key_of(u64::from(self.zipf.draw(random)))
    }

    /// The number of the key of this popularity, the highest first, independent of the order in which keys were set.
    fn key_of(&self, rank: u64) -> u64 {
        (rank * 0x9e37_79b1 + 17) % self.keys
    }

    fn measurement(
        &self,
        case: &str,
        payload: usize,
        measured: &Measured,
        cases: &[(&str, Measured)],
    ) -> Measurement {
        let Measured { stats, gets, misses, zone_hits, .. } = measured;
        let zone = &stats.zone;
        let per_mib = |measured: &Measured| measured.stats.items as f64 / (measured.memory as f64 / MIB);
        let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
        let other = |name: &str| cases.iter().find(|(case, _)| *case == name).map(|(_, measured)| measured);
        let items_ratio = |name: &str| other(name).map(|other| per_mib(measured) / per_mib(other));
        let misses_ratio = |name: &str| other(name).map(|other| share(*misses, other.misses));
        let mut zone_hit_ns = measured.zone_hit_ns.clone();
        zone_hit_ns.sort_unstable();
        Measurement::new("cache", case)
            .config("mode", "zexpander")
            .config("trace", format!("{:?}", self.options.trace.unwrap_or(TraceKind::Zipf)).to_lowercase())
            .config("codec", self.options.zone_codec().to_string())
            .config("keys", self.keys)
            .config("payload_bytes_mean", payload)
            .config("memory_bytes", measured.memory)
            .metric("items_per_mib", per_mib(measured))
            .metric("items_ratio_to_cache", items_ratio("plain"))
            .metric("items_ratio_to_memcached", items_ratio("memcached"))
            .metric("miss_ratio", share(*misses, *gets))
            .metric("misses_ratio_to_cache", misses_ratio("plain"))
            .metric("misses_ratio_to_memcached", misses_ratio("memcached"))
            .metric("n_hit_share", share(gets - misses - zone_hits, gets - misses))
            .metric("n_zone_share", share(stats.log_bytes_max, measured.memory))
            .metric("compression_ratio", zone.compression_ratio())
            .metric("zone_item_bytes", share(zone.block_bytes, zone.items))
            .metric("zone_fill", share(zone.block_bytes, zone.arena_bytes))
            .metric("zone_share", share(zone.arena_bytes + zone.directory_bytes, measured.memory))
            .metric("block_items", share(zone.items, zone.blocks))
            .metric("blocks_moved_per_item", share(zone.blocks_moved, zone.demoted))
            .metric("metadata_bytes_per_item", share(metadata_bytes(zone), zone.items))
            .metric("decompressions_per_get", share(*zone_hits, *gets))
            .metric("z_hit_us", zone_hit_ns.get(zone_hit_ns.len() / 2).map(|&ns| ns as f64 / 1000.0))
            .metric("ns_per_request", measured.ns_per_request)
            .metric("resident_bytes_max", measured.resident_bytes_max)
    }
}
