//! Readers beside the writer of a cuckoo table, in every interleaving and every order of memory that the declared
//! orderings allow: `RUSTFLAGS="--cfg loom" cargo test -p alluvium-index --release loom_`.
//!
//! The tables have two or three buckets, so that keys can be made for chosen buckets. Offsets identify the keys.
#![cfg(loom)]

use alluvium_base::KeyHash;
use alluvium_index::cuckoo::CuckooTable;
use loom::sync::Arc;
use loom::thread;

/// A key with `tag` whose primary bucket is at the fraction `part` of the table.
fn key(part: f64, tag: u16) -> KeyHash {
    let bucket_bits = (part * 4_294_967_296.0) as u64;
    KeyHash::from_halves(0, bucket_bits << 32 | u64::from(tag))
}

fn offsets(table: &CuckooTable, hash: KeyHash) -> Vec<u32> {
    table.candidates(hash).map(|(_, offset)| offset).collect()
}

fn model(story: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 100_000;
    builder.preemption_bound = Some(4);
    builder.check(story);
}

const MOVABLE: u32 = 10;
const MOVABLE_NEW: u32 = 11;
const FIXED: u32 = 20;
const LATE: u32 = 30;

/// With two buckets, tag 1 may be in both, tags 2 and 4 only in their primary one. This key starts in its primary
/// bucket.
fn movable() -> KeyHash {
    key(0.0, 1)
}

/// This key starts in its alternative bucket. A reader looks at the primary one first, so this key and [`movable`]
/// encounter the two steps of a move in opposite orders.
fn movable_home() -> KeyHash {
    key(0.5, 1)
}

fn late() -> KeyHash {
    key(0.0, 4)
}

/// Two buckets, of which bucket 0 is full: one key that is movable, three that cannot move. Inserting `late()` moves
/// `moved` to bucket 1.
fn two_buckets(moved: KeyHash) -> Arc<CuckooTable> {
    let table = CuckooTable::with_entries(7);
    assert_eq!(table.slots(), 8);
    // Makes bucket 0 the emptier one.
    table.insert(key(0.5, 2), FIXED).unwrap();
    table.insert(moved, MOVABLE).unwrap();
    for _ in 0..3 {
        table.insert(key(0.0, 2), FIXED).unwrap();
    }
    assert!(table.entries().any(|entry| entry == (0, 1, MOVABLE)));
    Arc::new(table)
}

/// A key that is being moved is found, at its old or its new position, and never with the offset of the key that takes
/// its place.
fn a_moved_key_is_never_missed(moved: KeyHash) {
    model(move || {
        let table = two_buckets(moved);
        let reader = {
            let table = table.clone();
            thread::spawn(move || {
                let found = offsets(&table, moved);
                assert!(!found.is_empty(), "missed");
                assert!(found.iter().all(|&offset| offset == MOVABLE), "{found:?}");
            })
        };
        table.insert(late(), LATE).unwrap();
        assert!(table.entries().any(|entry| entry == (5, 1, MOVABLE)), "the insertion moved the key");
        reader.join().unwrap();
    });
}

#[test]
fn loom_a_key_moved_to_its_alternative_bucket_is_never_missed() {
    a_moved_key_is_never_missed(movable());
}

#[test]
fn loom_a_key_moved_to_its_primary_bucket_is_never_missed() {
    a_moved_key_is_never_missed(movable_home());
}

/// A key being inserted is seen whole or not at all.
#[test]
fn loom_a_new_key_appears_with_its_offset() {
    model(|| {
        let table = two_buckets(movable());
        let reader = {
            let table = table.clone();
            thread::spawn(move || {
                let found = offsets(&table, late());
                assert!(found.is_empty() || found == [LATE], "{found:?}");
            })
        };
        table.insert(late(), LATE).unwrap();
        reader.join().unwrap();
    });
}

/// Three buckets and a path of two moves: A moves from bucket 0 to the slot in bucket 1 that B leaves for bucket 2.
/// Both are found at all times; a mix-up would show B's offset under A's tag.
#[test]
fn loom_no_key_on_a_longer_path_is_missed_or_mixed_up() {
    const A: u32 = 10;
    const B: u32 = 11;
    model(|| {
        let first = key(0.0, 1);
        let second = key(0.5, 2);
        let table = CuckooTable::with_entries(11);
        assert_eq!(table.slots(), 12);
        table.insert(first, A).unwrap();
        table.insert(second, B).unwrap();
        for _ in 0..3 {
            table.insert(key(0.0, 2), FIXED).unwrap();
            table.insert(key(0.5, 3), FIXED).unwrap();
        }
        let table = Arc::new(table);
        let reader = {
            let table = table.clone();
            thread::spawn(move || {
                for (hash, expected) in [(first, A), (second, B)] {
                    let found = offsets(&table, hash);
                    assert!(!found.is_empty(), "missed");
                    assert!(found.iter().all(|&offset| offset == expected), "{found:?}");
                }
            })
        };
        table.insert(key(0.0, 2), LATE).unwrap();
        assert_eq!(offsets(&table, first), [A]);
        assert_eq!(offsets(&table, second), [B]);
        assert!(table.entries().any(|entry| entry == (4, 1, A)), "A moved");
        assert!(table.entries().any(|entry| entry == (8, 2, B)), "B moved");
        reader.join().unwrap();
    });
}

/// A key that is overwritten and then moved has its old or its new offset, and once new never the old one again.
#[test]
fn loom_an_overwrite_is_not_undone_by_a_move() {
    model(|| {
        let table = two_buckets(movable());
        let reader = {
            let table = table.clone();
            thread::spawn(move || {
                let before = offsets(&table, movable());
                let after = offsets(&table, movable());
                for found in [&before, &after] {
                    assert!(!found.is_empty(), "missed");
                    assert!(found.iter().all(|offset| [MOVABLE, MOVABLE_NEW].contains(offset)), "{found:?}");
                }
                assert!(
                    !before.contains(&MOVABLE_NEW) || after.contains(&MOVABLE_NEW),
                    "{before:?}, {after:?}"
                );
            })
        };
        let slot = table.candidates(movable()).next().unwrap().0;
        table.replace(slot, movable(), MOVABLE_NEW);
        table.insert(late(), LATE).unwrap();
        reader.join().unwrap();
    });
}

/// A slot that is emptied and filled again does not show its new offset under the old tag.
#[test]
fn loom_a_reused_slot_does_not_lend_its_offset() {
    model(|| {
        let table = two_buckets(movable());
        let reader = {
            let table = table.clone();
            thread::spawn(move || {
                let found = offsets(&table, movable());
                assert!(found.is_empty() || found == [MOVABLE], "{found:?}");
            })
        };
        let slot = table.candidates(movable()).next().unwrap().0;
        table.remove(slot);
        table.insert(late(), LATE).unwrap();
        assert!(table.entries().any(|entry| entry == (slot.index(), 4, LATE)), "the slot was reused");
        reader.join().unwrap();
    });
}
