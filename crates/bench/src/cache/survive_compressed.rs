//! A cache in a file that compresses beside one that does not, in the same bytes: how many items each holds, how many
//! gets miss, and what a restart leaves.
//!
//! Keys are requested by popularity, a miss is followed by a set, and every value found is compared with the one that
//! was set. The first half of the requests warms up.

use std::time::Instant;

use alluvium_cache::{Builder, Cache, Codec, SurvivingStats};
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::documents::{KEY_BYTES, Maker, key};
use super::items::wrong;
use super::options::CacheOptions;
use super::requests::Zipf;
use super::survive::TemporaryFile;
use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::report::Report;

const SKEW: f64 = 0.99;
/// Keys for each item for which the plain cache has room.
const KEYS_PER_ITEM: u64 = 4;

/// What a cache did.
struct Measured {
    start: SurvivingStats,
    end: SurvivingStats,
    items: u64,
    items_again: u64,
    misses: u64,
    ns_per_request: f64,
}

/// Runs both caches.
///
/// # Errors
/// [`BenchError`]: a wrong value, or settings that are refused.
pub fn run(options: &CacheOptions, codec: Codec, report: &mut Report) -> Result<(), BenchError> {
    let maker = Maker::new(options.values.clone())?;
    let payload = KEY_BYTES + maker.bytes_mean();
    let keys = options.items.unwrap_or(options.memory / (payload as u64 + 26) * KEYS_PER_ITEM).max(1);
    let zipf = Zipf::new(keys, options.skew.unwrap_or(SKEW));
    let builder = Cache::builder().memory_limit(options.memory as usize).payload_bytes_mean(payload);
    let plain = measure(options, &maker, &zipf, keys, &builder, None)?;
    let compressed = measure(options, &maker, &zipf, keys, &builder, Some(codec))?;
    for (case, measured) in [("surviving", &plain), ("surviving-compressed", &compressed)] {
        let Measured { start, end, .. } = measured;
        let gets = options.requests.max(1) as f64;
        let is_plain = case == "surviving";
        let measurement = Measurement::new("cache", case)
            .config("mode", "nvm")
            .config("codec", if is_plain { "-".to_owned() } else { codec.to_string() })
            .config("values", format!("{:?}", options.values))
            .config("keys", keys)
            .config("payload_bytes", payload)
            .config("memory_bytes", options.memory)
            .metric("items", measured.items)
            .metric("items_ratio_to_plain", measured.items as f64 / plain.items.max(1) as f64)
            .metric("items_after_restart", measured.items_again)
            .metric("miss_ratio", measured.misses as f64 / gets)
            .metric("compressed_share_of_zones", share(end.block_bytes, end.used_bytes))
            .metric("compression_ratio", end.compression_ratio())
            .metric("decompressions_per_get", (end.unpacked - start.unpacked) as f64 / gets)
            .metric("promoted_per_get", (end.promoted - start.promoted) as f64 / gets)
            .metric("evicted_by_index", end.evicted_by_index - start.evicted_by_index)
            .metric("inserted", end.inserted - start.inserted)
            .metric("kept", end.kept - start.kept)
            .metric("packed", end.packed - start.packed)
            .metric("blocks_copied", end.blocks_copied - start.blocks_copied)
            .metric("dictionaries", end.dictionaries)
            .metric("file_bytes", end.file_bytes)
            .metric("beside_bytes", end.beside_bytes)
            .metric("ns_per_request", measured.ns_per_request);
        report.add(measurement)?;
    }
    Ok(())
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Loads all keys, then requests them twice as often as the options say.
fn measure(
    options: &CacheOptions,
    maker: &Maker,
    zipf: &Zipf,
    keys: u64,
    builder: &Builder,
    codec: Option<Codec>,
) -> Result<Measured, BenchError> {
    let file = TemporaryFile::new(options);
    let refused = |error: &dyn std::fmt::Display| BenchError::Usage(error.to_string());
    let open = || file.open_compressed(builder.clone(), options.survive, codec);
    let cache = open()?;
    let mut value = Vec::new();
    for number in 0..keys {
        maker.make(number, &mut value);
        cache.set(&key(number), &value).map_err(|error| refused(&error))?;
    }
    let mut random = SmallRng::seed_from_u64(options.seed);
    let (mut misses, mut start, mut began) = (0, cache.stats(), Instant::now());
    for request in 0..2 * options.requests {
        if request == options.requests {
            (misses, start, began) = (0, cache.stats(), Instant::now());
        }
        // Neighbours in popularity are no neighbours in order of their first set.
        let number = (u64::from(zipf.draw(&mut random)) * 0x9e37_79b1 + 17) % keys;
        maker.make(number, &mut value);
        match cache.get_with(&key(number), |item| item.value == value) {
            Some(true) => {}
            Some(false) => return Err(wrong(number)),
            None => {
                misses += 1;
                cache.set(&key(number), &value).map_err(|error| refused(&error))?;
            }
        }
    }
    let ns_per_request = began.elapsed().as_nanos() as f64 / options.requests.max(1) as f64;
    let (end, items) = (cache.stats(), cache.iter().count() as u64);
    drop(cache);
    let items_again = open()?.iter().count() as u64;
    Ok(Measured { start, end, items, items_again, misses, ns_per_request })
}
