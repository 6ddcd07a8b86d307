//! Miss ratios of the eviction policies on synthetic traces.
//!
//! A million keys, room for a tenth of them, five million requests, some of them for warming up; a miss is followed by
//! a set. The traces were fitted so that LRU, clock and S3-FIFO as published match the miss ratios that the project's
//! targets state for them (decision 0030).

use alluvium_cache::{Builder, Cache, Eviction};
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::items::{Keys, Value, is_value, wrong};
use super::options::{CacheOptions, Case, TraceKind};
use super::requests::Zipf;
use super::speed::refused;
use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::report::Report;

const KEYS: u32 = 1_000_000;
const ROOM: usize = 100_000;
const SKEW: f64 = 0.99;
/// Requests by popularity; the first fifth fills the cache and does not count.
const REQUESTS: usize = 5_000_000;
/// Keys of one scan, which follows every 200 000 requests by popularity: a third of all requests.
const SCAN_KEYS: u32 = 100_000;
const REQUESTS_PER_SCAN: usize = 200_000;
/// Drift: after this many requests the ranks move by `MOVE_KEYS` keys.
const REQUESTS_PER_MOVE: usize = 1_000_000;
const MOVE_KEYS: usize = 50_000;

const POLICIES: [(&str, Eviction); 4] = [
    ("s3_fifo", Eviction::S3Fifo),
    ("approximate_lru", Eviction::ApproximateLru),
    ("lru", Eviction::Lru),
    ("fifo", Eviction::Fifo),
];

/// A request, and whether it counts.
type Request = (u32, bool);

/// Replays the requested traces under every policy, with items of every requested size, since tiny ones are stored
/// differently.
pub fn run(options: &CacheOptions, kind: TraceKind, report: &mut Report) -> Result<(), BenchError> {
    let zipf = Zipf::new(u64::from(KEYS), SKEW);
    let kinds = [(TraceKind::Zipf, "zipf"), (TraceKind::Scan, "scan"), (TraceKind::Drift, "drift")];
    for (_, name) in kinds.into_iter().filter(|&(one, _)| [one, TraceKind::All].contains(&kind)) {
        let trace = requests(name, &zipf, options.seed);
        let exact = exact_lru(&trace);
        for case in options.cases() {
            report.add(measurement(name, &case, "exact_lru", exact).metric("entries", ROOM))?;
            for (policy, builder) in caches(&case)? {
                let replayed = replay(&trace, &case, builder)?;
                report.add(
                    measurement(name, &case, policy, replayed.miss_ratio)
                        .metric("entries", replayed.entries)
                        .metric("memory_bytes", replayed.memory_bytes),
                )?;
            }
        }
    }
    Ok(())
}

/// A cache for each policy, with room for [`ROOM`] items. If items would fit in cells but are not stored there by
/// default, also one that stores them in cells, with the same memory.
fn caches(case: &Case) -> Result<Vec<(&'static str, Builder)>, BenchError> {
    let payload = case.key_bytes + case.value_bytes;
    let all = Cache::builder().payload_bytes_mean(payload);
    let mut caches: Vec<(&str, Builder)> = POLICIES
        .into_iter()
        .map(|(policy, eviction)| (policy, all.clone().eviction(eviction).room_for(ROOM)))
        .collect();
    let in_cells = Cache::builder().payload_bytes_fixed(payload);
    let memory_bytes = |builder: &Builder| -> Result<usize, BenchError> {
        let cache = builder.clone().room_for(ROOM).build_exclusive().map_err(refused)?;
        Ok(cache.stats().total().memory_bytes as usize)
    };
    let in_logs = memory_bytes(&all)?;
    if in_logs != memory_bytes(&in_cells)? {
        caches.push(("s3_fifo_in_cells", in_cells.memory_limit(in_logs)));
    }
    Ok(caches)
}

fn measurement(trace: &str, case: &Case, policy: &str, miss_ratio: f64) -> Measurement {
    Measurement::new("cache", policy)
        .config("trace", trace)
        .config("shape", case.name)
        .config("keys", KEYS)
        .config("room", ROOM)
        .metric("miss_ratio", miss_ratio)
}

fn requests(name: &str, zipf: &Zipf, seed: u64) -> Vec<Request> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut trace = Vec::with_capacity(REQUESTS * 3 / 2);
    let mut scanned = KEYS;
    for number in 0..REQUESTS {
        let moved = if name == "drift" { number / REQUESTS_PER_MOVE * MOVE_KEYS } else { 0 };
        let key = (zipf.draw(&mut random) as usize + moved) % KEYS as usize;
        trace.push((key as u32, number >= REQUESTS / 5));
        if name == "scan" && (number + 1) % REQUESTS_PER_SCAN == 0 {
            trace.extend((scanned..scanned + SCAN_KEYS).map(|key| (key, false)));
            scanned += SCAN_KEYS;
        }
    }
    trace
}

/// The result of a trace.
struct Replayed {
    miss_ratio: f64,
    /// Items in the cache at the end.
    entries: u64,
    memory_bytes: u64,
}

fn replay(trace: &[Request], case: &Case, builder: Builder) -> Result<Replayed, BenchError> {
    let cache = builder.build_exclusive().map_err(refused)?;
    let mut keys = Keys::new(1, case.key_bytes);
    let mut value = Value::new(case.value_bytes);
    let (mut counted, mut missed) = (0_u64, 0_u64);
    for &(number, counts) in trace {
        keys.set(0, u64::from(number));
        let found = cache.get_with(keys.get(0), |item| is_value(item.value, u64::from(number)));
        if found == Some(false) {
            return Err(wrong(u64::from(number)));
        }
        counted += u64::from(counts);
        if found.is_none() {
            missed += u64::from(counts);
            cache
                .set(keys.get(0), value.of(u64::from(number)))
                .map_err(|error| BenchError::Usage(error.to_string()))?;
        }
    }
    cache.sweep();
    Ok(Replayed {
        miss_ratio: missed as f64 / counted.max(1) as f64,
        entries: cache.len() as u64,
        memory_bytes: cache.stats().total().memory_bytes,
    })
}

/// The miss ratio of LRU with room for exactly `ROOM` items, by its definition: a list of all accesses, of which an
/// item's last one counts.
fn exact_lru(trace: &[Request]) -> f64 {
    let keys = trace.iter().map(|&(key, _)| key as usize + 1).max().unwrap_or(0);
    let mut last = vec![0_usize; keys];
    let mut is_present = vec![false; keys];
    let (mut oldest, mut present) = (0, 0);
    let (mut counted, mut missed) = (0_u64, 0_u64);
    for (at, &(key, counts)) in trace.iter().enumerate() {
        counted += u64::from(counts);
        missed += u64::from(counts && !is_present[key as usize]);
        present += usize::from(!is_present[key as usize]);
        (last[key as usize], is_present[key as usize]) = (at, true);
        while present > ROOM {
            let candidate = trace[oldest].0 as usize;
            if is_present[candidate] && last[candidate] == oldest {
                is_present[candidate] = false;
                present -= 1;
            }
            oldest += 1;
        }
    }
    missed as f64 / counted.max(1) as f64
}
