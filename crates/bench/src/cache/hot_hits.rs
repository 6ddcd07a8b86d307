//! What a get takes that the hot zone answers, beside one of a cache without a compressed zone.

use std::time::Instant;

use alluvium_cache::Cache;

use super::documents::{Maker, key};
use super::items::wrong;
use crate::error::BenchError;

/// Maximum number of keys: their items exceed the processor's caches, as those of a hot zone do.
const KEYS_MAX: usize = 1 << 16;
/// Passes over all keys before those that are timed, so that what is asked for again has left the zone.
const WARM_PASSES: usize = 3;
/// Timed passes over each cache, by turns.
const PASSES: usize = 41;

/// Medians of all passes, each the mean of a pass, in nanoseconds of a get.
pub struct HotHits {
    /// Of the cache without a zone.
    pub plain_ns: f64,
    /// Of the cache with one.
    pub compressed_ns: f64,
    /// The median of what both took one after the other: what disturbs the machine disturbs both.
    pub ratio: f64,
}

/// Asks both caches for the first of `numbers` that both hold, the second one in its hot zone. Returns `None` if there
/// is no such key.
///
/// # Errors
/// [`BenchError`] if a value is wrong.
pub fn measure(
    maker: &Maker,
    plain: &Cache,
    compressed: &Cache,
    numbers: impl Iterator<Item = u64>,
) -> Result<Option<HotHits>, BenchError> {
    let numbers: Vec<u64> = numbers.take(KEYS_MAX).collect();
    for _ in 0..WARM_PASSES {
        for &number in &numbers {
            let _found = compressed.get_with(&key(number), |_| ());
        }
    }
    let mut value = Vec::new();
    let mut keys = Vec::new();
    for number in numbers {
        let zone_hits = compressed.stats().total().zone.hits;
        maker.make(number, &mut value);
        let is_right = |cache: &Cache| cache.get_with(&key(number), |item| item.value == value);
        let found = [is_right(plain), is_right(compressed)];
        if found.contains(&Some(false)) {
            return Err(wrong(number));
        }
        if found == [Some(true); 2] && compressed.stats().total().zone.hits == zone_hits {
            keys.push(key(number));
        }
    }
    if keys.is_empty() {
        return Ok(None);
    }
    let pass = |cache: &Cache| {
        let began = Instant::now();
        let bytes: usize = keys.iter().filter_map(|key| cache.get_with(key, |item| item.value.len())).sum();
        std::hint::black_box(bytes);
        began.elapsed().as_nanos() as f64 / keys.len() as f64
    };
    let passes: Vec<(f64, f64)> = (0..PASSES).map(|_| (pass(plain), pass(compressed))).collect();
    Ok(Some(HotHits {
        plain_ns: median(passes.iter().map(|pass| pass.0)),
        compressed_ns: median(passes.iter().map(|pass| pass.1)),
        ratio: median(passes.iter().map(|pass| pass.1 / pass.0)),
    }))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
