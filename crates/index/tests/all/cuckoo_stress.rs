//! Readers in real threads beside a writer that keeps a cuckoo table as full as possible.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use alluvium_base::KeyHash;
use alluvium_index::cuckoo::CuckooTable;
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};

fn random_hash(random: &mut SmallRng) -> KeyHash {
    KeyHash::from_halves(0, random.next_u64())
}

/// Offsets of resident keys are their numbers; those of passing keys have the top bit set.
const PASSING: u32 = 1 << 31;

#[test]
fn resident_keys_are_never_missed_beside_a_busy_writer() {
    for (entries, rounds) in [(60, 40_000), (3_000, 60_000)] {
        let table = CuckooTable::with_entries(entries);
        let mut random = SmallRng::seed_from_u64(entries as u64);
        let residents: Vec<KeyHash> = (0..entries as u32 / 2)
            .map(|number| {
                let hash = random_hash(&mut random);
                table.insert(hash, number).expect("room at half load");
                hash
            })
            .collect();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for reader in 0..2 {
                let (table, residents, done) = (&table, &residents, &done);
                scope.spawn(move || {
                    let mut random = SmallRng::seed_from_u64(reader);
                    let mut batch = vec![Default::default(); residents.len()];
                    while !done.load(Ordering::Relaxed) {
                        for _ in 0..residents.len() {
                            let number = random.random_range(0..residents.len());
                            let mut found = table.candidates(residents[number]);
                            assert!(found.any(|(_, offset)| offset == number as u32), "missed {number}");
                        }
                        table.candidates_batch(residents, &mut batch);
                        for (number, mut found) in batch.iter().copied().enumerate() {
                            assert!(
                                found.any(|(_, offset)| offset == number as u32),
                                "missed {number} in a batch"
                            );
                        }
                    }
                });
            }
            let mut passing: Vec<(KeyHash, u32)> = Vec::new();
            for round in 0..rounds {
                let hash = random_hash(&mut random);
                let offset = PASSING | round;
                while table.insert(hash, offset).is_err() {
                    assert!(!passing.is_empty(), "passing keys fill the table");
                    let (old, offset) = passing.swap_remove(random.random_range(0..passing.len()));
                    let slot = table.candidates(old).find(|&(_, found)| found == offset).expect("present").0;
                    table.remove(slot);
                }
                passing.push((hash, offset));
            }
            done.store(true, Ordering::Relaxed);
            for &(hash, offset) in &passing {
                assert!(table.candidates(hash).any(|(_, found)| found == offset));
            }
            assert_eq!(table.len(), residents.len() + passing.len());
        });
    }
}

/// A resident key's offset only increases, as the writer overwrites it, whatever moves meanwhile.
#[test]
fn overwrites_are_seen_in_order() {
    let table = CuckooTable::with_entries(400);
    let mut random = SmallRng::seed_from_u64(9);
    let hot = random_hash(&mut random);
    table.insert(hot, 0).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut newest = 0;
            while !done.load(Ordering::Relaxed) {
                let seen = table.candidates(hot).map(|(_, offset)| offset).find(|&offset| offset < PASSING);
                let seen = seen.expect("the hot key is present");
                assert!(seen >= newest, "{seen} after {newest}");
                newest = seen;
            }
        });
        let mut filling = Vec::new();
        for round in 1..100_000 {
            let slot = table.candidates(hot).find(|&(_, offset)| offset < PASSING).expect("present").0;
            table.replace(slot, hot, round);
            let hash = random_hash(&mut random);
            if table.insert(hash, PASSING | round).is_ok() {
                filling.push((hash, PASSING | round));
            } else {
                let (old, offset) = filling.swap_remove(random.random_range(0..filling.len()));
                let slot = table.candidates(old).find(|&(_, found)| found == offset).expect("present").0;
                table.remove(slot);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}
