//! SkimpyStash's Figure 8: how even chains are with one and with two slots for each key, in the directory itself.

use alluvium_base::KeyHash;
use alluvium_base::checksum::checksum64;
use alluvium_bench::BenchError;
use alluvium_index::chain_region::{ChainRegion, Choice, Pointer, SlotShape};

use super::{Axis, Figure, Panel, Published, Scale, Series};

/// Keys for a slot, on average.
const LENGTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// Keys that are put at most.
const KEYS_MAX: u64 = 400_000;

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let keys = scale.simulated_keys_max.min(KEYS_MAX);
    let curve = |filter_bits: usize| -> Vec<(f64, f64)> {
        let deviation =
            |&length: &usize| (length as f64, relative_deviation(keys, length, filter_bits, scale.seed));
        LENGTHS.iter().map(deviation).collect()
    };
    let (base, enhanced) = (curve(0), curve(8));
    let better = |at: usize| base[at].1 / enhanced[at].1;
    Ok(Figure {
        id: "skimpy-8",
        title: "SkimpyStash: deviation of chain lengths, relative to their mean",
        source: "SkimpyStash (SIGMOD 2011), Figure 8",
        published: vec![
            Published::new("base_by_enhanced_at_1", 1.4, better(0)),
            Published::new("base_by_enhanced_at_32", 6.0, better(LENGTHS.len() - 1)),
        ],
        panels: vec![Panel {
            x: Axis::logarithmic("keys per slot"),
            y: Axis::linear("standard deviation / mean"),
            series: vec![Series::measurement("base", base), Series::measurement("enhanced", enhanced)],
        }],
    })
}

/// Puts `keys` different keys and returns the standard deviation of the lengths of all chains, by their mean.
fn relative_deviation(keys: u64, length: usize, filter_bits: usize, seed: u64) -> f64 {
    let shape = SlotShape { pointer_bytes: 4, filter_bytes: (filter_bits * length).div_ceil(8) };
    let slots = (keys as usize / length).next_multiple_of(2).max(2);
    let mut region = ChainRegion::new(shape, 0, slots);
    let mut lengths = vec![0.0_f64; slots];
    for key in 0..keys {
        let half = |half| checksum64(&key.to_le_bytes(), seed ^ half);
        let hash = KeyHash::from_halves(half(1), half(2));
        let slot = match region.choose(hash) {
            // No key is put twice, so a walk would find it in neither chain.
            Choice::Slot(slot) | Choice::Walk(slot, _) => slot,
        };
        region.push(slot, hash, Pointer(key + 1));
        lengths[slot.0] += 1.0;
    }
    let mean = keys as f64 / slots as f64;
    let variance = lengths.iter().map(|length| (length - mean).powi(2)).sum::<f64>() / slots as f64;
    variance.sqrt() / mean
}
