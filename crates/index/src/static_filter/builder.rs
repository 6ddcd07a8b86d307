//! Solves the equations of all keys.

use alluvium_base::KeyHash;

use super::equation::{BAND, Equation};
use super::filter::{ROW_SLOTS, StaticFilter};

/// Percentage of extra slots that is tried first. With more than a million keys, fewer never succeed.
fn first_percent(keys: u64) -> u64 {
    if keys > 1 << 20 { 4 } else { 2 }
}

/// Number of tries after which the slots grow by a percent.
const TRIES: u64 = 2;

/// Equations in banded form: at most one for each slot, and that of slot `i` starts there.
struct Banded {
    /// 0: no equation starts here.
    coefficients: Vec<u128>,
    fingerprints: Vec<u32>,
}

/// Builds a filter of `width` bits for keys with `hashes`, some of which may be equal.
pub(super) fn build(hashes: &[KeyHash], width: u32) -> StaticFilter {
    let keys = hashes.len() as u64;
    let mut percent = first_percent(keys);
    for seed in 0.. {
        let slots = (keys + (keys * percent).div_ceil(100)).max(BAND).next_multiple_of(ROW_SLOTS);
        if let Some(banded) = band(hashes, width, seed, slots) {
            return StaticFilter::from_rows(width, keys, slots, seed, solve(&banded, width));
        }
        percent += u64::from(seed % TRIES == TRIES - 1);
    }
    unreachable!("equations with enough slots have a solution");
}

/// Gaussian elimination, key by key. Returns `None` if two equations contradict each other.
fn band(hashes: &[KeyHash], width: u32, seed: u64, slots: u64) -> Option<Banded> {
    let mut banded = Banded { coefficients: vec![0; slots as usize], fingerprints: vec![0; slots as usize] };
    let mask = u32::MAX >> (u32::BITS - width);
    for &hash in hashes {
        let Equation { start, mut coefficients, fingerprint } = Equation::new(hash, seed, slots);
        let (mut place, mut fingerprint) = (start as usize, fingerprint & mask);
        loop {
            let there = banded.coefficients[place];
            if there == 0 {
                banded.coefficients[place] = coefficients;
                banded.fingerprints[place] = fingerprint;
                break;
            }
            coefficients ^= there;
            fingerprint ^= banded.fingerprints[place];
            if coefficients == 0 {
                if fingerprint != 0 {
                    return None;
                }
                break;
            }
            let zeros = coefficients.trailing_zeros();
            coefficients >>= zeros;
            place += zeros as usize;
        }
    }
    Some(banded)
}

/// Back substitution, from the last slot to the first. Rows have `width` words; word `j` holds bit `j` of each of the
/// row's slots.
fn solve(banded: &Banded, width: u32) -> Vec<u64> {
    let slots = banded.coefficients.len();
    let mut rows = vec![0; slots / ROW_SLOTS as usize * width as usize];
    // For each bit of the width, that bit of the 128 slots from the current one on.
    let mut later = vec![0u128; width as usize];
    for slot in (0..slots).rev() {
        let (coefficients, fingerprint) = (banded.coefficients[slot], banded.fingerprints[slot]);
        let row = slot / ROW_SLOTS as usize * width as usize;
        for (bit, later) in later.iter_mut().enumerate() {
            *later <<= 1;
            let sum = (*later & coefficients).count_ones() & 1;
            // A slot without an equation may have any value.
            let value = if coefficients == 0 { 0 } else { sum ^ (fingerprint >> bit & 1) };
            *later |= u128::from(value);
            rows[row + bit] |= u64::from(value) << (slot as u64 % ROW_SLOTS);
        }
    }
    rows
}
