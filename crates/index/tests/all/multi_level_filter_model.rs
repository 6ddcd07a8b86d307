//! The multi-level filter compared with a map from keys to their newest runs.

use std::collections::BTreeMap;

use alluvium_base::KeyHash;
use alluvium_index::multi_level_filter::{
    FINGERPRINT_BITS_MAX, FINGERPRINT_BITS_MIN, Known, MultiLevelFilter, MultiLevelFilterBuilder, RUNS_MAX,
    SECONDARY_SHARE_MAX,
};
use proptest::prelude::*;

fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

fn hash(id: u64) -> KeyHash {
    KeyHash::from_halves(mix(id), mix(!id))
}

/// The puts: key by key with its run, and the newest run of each key.
struct Puts {
    puts: Vec<(KeyHash, u8)>,
    newest: BTreeMap<KeyHash, u8>,
}

/// `per_run` keys in each of `runs` runs, about `again_percent` of which were in an older one.
fn puts(runs: u8, per_run: u64, again_percent: u64, seed: u64) -> Puts {
    let mut puts = Puts { puts: Vec::new(), newest: BTreeMap::new() };
    let mut next = 0;
    for run in 0..runs {
        for number in 0..per_run {
            let draw = mix(seed ^ u64::from(run) << 32 ^ number);
            let is_again = next > 0 && draw % 100 < again_percent;
            let id = if is_again { draw / 100 % next } else { next };
            next += u64::from(!is_again);
            let hash = hash(seed ^ id << 20);
            // A run contains a key only once.
            if puts.newest.get(&hash) != Some(&run) {
                puts.puts.push((hash, run));
                puts.newest.insert(hash, run);
            }
        }
    }
    puts
}

/// Puts into a filter, either with what a get before each put finds out, or blindly.
fn fill(
    builder: &mut MultiLevelFilterBuilder,
    puts: &[(KeyHash, u8)],
    is_blind: bool,
    seen: &mut BTreeMap<KeyHash, u8>,
) {
    for &(hash, run) in puts {
        let is_present = seen.insert(hash, run).is_some();
        let known = match (is_blind, is_present) {
            (true, _) => Known::Unknown,
            (false, true) => Known::Present,
            (false, false) => Known::Absent,
        };
        builder.insert(hash, run, known).expect("a table larger than its keys takes them");
    }
}

/// A table with room to spare: this test does not concern the random variation of small ones.
fn builder(keys: usize, fingerprint_bits: u32) -> MultiLevelFilterBuilder {
    MultiLevelFilterBuilder::new(keys * 5 / 4 + 8, fingerprint_bits)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// SlimDB's bound: with narrow fingerprints, which conflict all the time, every key has exactly its run.
    #[test]
    fn one_run_and_the_right_one_after_gets(
        runs in 1u8..=8,
        per_run in 1u64..200,
        again_percent in 0u64..60,
        fingerprint_bits in FINGERPRINT_BITS_MIN..=FINGERPRINT_BITS_MAX,
        seed: u64,
    ) {
        let Puts { puts, newest } = puts(runs, per_run, again_percent, seed);
        let mut builder = builder(newest.len(), fingerprint_bits);
        let mut seen = BTreeMap::new();
        let (older, younger) = puts.split_at(puts.len() / 2);
        fill(&mut builder, older, false, &mut seen);
        let half = builder.finish();
        let mut builder = MultiLevelFilterBuilder::reopen(&half);
        fill(&mut builder, younger, false, &mut seen);
        prop_assert_eq!(builder.len(), newest.len());
        let filter = builder.finish();
        prop_assert!(!filter.is_ambiguous());
        prop_assert_eq!(filter.len(), newest.len());
        for (&hash, &run) in &newest {
            prop_assert!(filter.runs(hash).eq([run]));
        }
        prop_assert_eq!(MultiLevelFilter::from_bytes(&filter.to_bytes()), Ok(filter));
    }

    #[test]
    fn after_blind_puts_the_newest_run_is_never_missed(
        runs in 1u8..=8,
        per_run in 1u64..200,
        again_percent in 0u64..60,
        fingerprint_bits in FINGERPRINT_BITS_MIN..=FINGERPRINT_BITS_MAX,
        seed: u64,
    ) {
        let Puts { puts, newest } = puts(runs, per_run, again_percent, seed);
        let mut builder = builder(newest.len(), fingerprint_bits);
        let slots = (newest.len() * 5 / 4 + 8) as f64;
        fill(&mut builder, &puts, true, &mut BTreeMap::new());
        let filter = builder.finish();
        prop_assert!(filter.secondary_len() as f64 <= (slots * SECONDARY_SHARE_MAX).max(8.0));
        for (&hash, &run) in &newest {
            let mut named = filter.runs(hash);
            prop_assert!(named.len() == 1 || filter.is_ambiguous());
            prop_assert!(named.any(|named| named == run));
        }
        prop_assert_eq!(MultiLevelFilter::from_bytes(&filter.to_bytes()), Ok(filter));
    }

    #[test]
    fn damaged_bytes_are_refused(position: prop::sample::Index, flip in 1u8.., is_blind: bool) {
        let Puts { puts, newest } = puts(5, 40, 30, 3);
        let mut builder = builder(newest.len(), 5);
        fill(&mut builder, &puts, is_blind, &mut BTreeMap::new());
        let mut bytes = builder.finish().to_bytes();
        let position = position.index(bytes.len());
        bytes[position] ^= flip;
        prop_assert!(MultiLevelFilter::from_bytes(&bytes).is_err());
        prop_assert!(MultiLevelFilter::from_bytes(&bytes[..position]).is_err());
    }
}

#[test]
fn a_full_filter_says_so_and_keeps_what_it_has() {
    let mut builder = MultiLevelFilterBuilder::new(1_000, 12);
    let taken = (0..2_000).take_while(|&id| builder.insert(hash(id), 0, Known::Absent).is_ok()).count();
    assert!((950..=1_060).contains(&taken), "{taken}");
    let filter = builder.finish();
    assert!((0..taken as u64).all(|id| filter.runs(hash(id)).eq([0])));
}

#[test]
fn absent_keys_rarely_get_a_run() {
    let keys = 1 << 17;
    let mut builder = MultiLevelFilterBuilder::new(keys as usize, 12);
    for id in 0..keys {
        builder.insert(hash(id), (id * 8 / keys) as u8, Known::Absent).unwrap();
    }
    let filter = builder.finish();
    assert!(filter.len() as f64 / filter.slots() as f64 > 0.949);
    let strangers = 1 << 20;
    let false_positives = (keys..keys + strangers).filter(|&id| filter.runs(hash(id)).len() > 0).count();
    assert!((false_positives as f64) < 0.002 * strangers as f64, "{false_positives}");
    // Conflicts with a table that is half full on average; each costs 17 bytes and its share of a group.
    let bits = filter.memory_bytes() as f64 * 8.0 / keys as f64;
    assert!(bits < 16.2, "{bits}");
    assert!(filter.secondary_len() as f64 <= 0.002 * keys as f64, "{}", filter.secondary_len());
}

#[test]
#[should_panic(expected = "a filter stands for 8 runs")]
fn a_ninth_run_is_refused() {
    let _ = MultiLevelFilterBuilder::new(10, 12).insert(hash(1), RUNS_MAX as u8, Known::Absent);
}
