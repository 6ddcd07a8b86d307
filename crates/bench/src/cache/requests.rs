//! The requested items, drawn before the clock starts.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::error::BenchError;
use crate::random::mix;

/// Marks a request that sets its item; the other bits are the number of the item.
pub const IS_SET: u32 = 1 << 31;

/// Cumulative probabilities of Zipf's law, with a table of where to start searching.
#[derive(Debug)]
pub struct Zipf {
    cumulative: Vec<f64>,
    guide: Vec<u32>,
}

const GUIDES: usize = 1 << 20;

impl Zipf {
    /// Ranks 0 to `keys` - 1 with probabilities proportional to (rank + 1)^-`skew`.
    pub fn new(keys: u64, skew: f64) -> Self {
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = (1..=keys)
            .map(|rank| {
                sum += (rank as f64).powf(-skew);
                sum
            })
            .collect();
        cumulative.iter_mut().for_each(|chance| *chance /= sum);
        let mut rank = 0;
        let guide = (0..=GUIDES)
            .map(|step| {
                while rank + 1 < cumulative.len() && cumulative[rank] < step as f64 / GUIDES as f64 {
                    rank += 1;
                }
                rank as u32
            })
            .collect();
        Self { cumulative, guide }
    }

    /// Draws a rank.
    pub fn draw(&self, random: &mut SmallRng) -> u32 {
        let chance = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let mut rank = self.guide[(chance * GUIDES as f64) as usize] as usize;
        while rank + 1 < self.cumulative.len() && self.cumulative[rank] < chance {
            rank += 1;
        }
        rank as u32
    }
}

/// `count` item numbers below `items` of the given skew, 0 for uniform. Rank and number are unrelated to an item's
/// position in the cache, because keys are.
///
/// # Errors
/// [`BenchError::Usage`] for a skew that is not a number or negative.
pub fn numbers(items: u64, skew: f64, count: usize, seed: u64) -> Result<Vec<u32>, BenchError> {
    if !(0.0..10.0).contains(&skew) {
        return Err(BenchError::Usage(format!("a skew of {skew}: between 0 and 10 makes sense")));
    }
    let mut random = SmallRng::seed_from_u64(seed);
    if skew == 0.0 {
        let below = |number: u64| ((u128::from(number) * u128::from(items)) >> 64) as u32;
        return Ok((0..count).map(|_| below(random.next_u64())).collect());
    }
    let zipf = Zipf::new(items, skew);
    Ok((0..count).map(|_| zipf.draw(&mut random)).collect())
}

/// `count` requests for item numbers below `items`: `get_ratio` percent of them are gets, the others have [`IS_SET`].
///
/// # Errors
/// [`BenchError::Usage`] for a skew that is not a number or negative.
pub fn draw(items: u64, skew: f64, count: usize, get_ratio: u8, seed: u64) -> Result<Vec<u32>, BenchError> {
    let mut requests = numbers(items, skew, count, seed)?;
    mark(&mut requests, get_ratio, seed);
    Ok(requests)
}

/// Makes requests of item numbers: `get_ratio` percent of them are gets, the others have [`IS_SET`].
pub fn mark(numbers: &mut [u32], get_ratio: u8, seed: u64) {
    for (at, request) in numbers.iter_mut().enumerate() {
        let is_set = mix(seed ^ !(at as u64)) % 100 >= u64::from(get_ratio);
        *request = *request & !IS_SET | if is_set { IS_SET } else { 0 };
    }
}
