//! Random keys and repeated timing.

use std::time::Instant;

use alluvium_base::KeyHash;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Repetitions of a timed loop; the fastest counts, since other programs disturbed it least.
const ROUNDS: usize = 9;

/// `count` random hashes.
pub fn random_hashes(count: usize, seed: u64) -> Vec<KeyHash> {
    let mut random = SmallRng::seed_from_u64(seed);
    (0..count).map(|_| KeyHash::from_halves(random.next_u64(), random.next_u64())).collect()
}

/// Keys per second of `work` on `keys` keys: the fastest of several rounds, each with a fresh `setup` that is not
/// timed.
pub fn rate_per_s<S>(keys: usize, mut setup: impl FnMut() -> S, mut work: impl FnMut(&S)) -> f64 {
    let seconds = (0..ROUNDS).map(|_| {
        let state = setup();
        let started = Instant::now();
        work(&state);
        started.elapsed().as_secs_f64()
    });
    keys as f64 / seconds.fold(f64::INFINITY, f64::min)
}

/// The nanoseconds per operation for `rate_per_s`.
pub fn nanoseconds_each(rate_per_s: f64) -> f64 {
    1e9 / rate_per_s
}
