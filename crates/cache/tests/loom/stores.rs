//! A store's space under readers: reused, and moved so that the free space is contiguous.

use alluvium_base::KeyHasher;
use alluvium_cache::{Access, Concurrent, ConcurrentReads, Store};
use loom::sync::Arc;

use super::{PREEMPTIONS, model, spawn, value};

/// A store with room for some items of 8+16 bytes.
fn small<A: Access>() -> Arc<Store<A>> {
    let builder = Store::builder().payload_bytes_mean(24).hasher(KeyHasher::Xxh3 { seed: 1 });
    Arc::new(builder.room_for(12).build_as().unwrap())
}

/// An item is removed, and another thread sets another one, which takes its place. A reader finds the former item whole
/// or not at all.
pub fn space_used_again() {
    let store = small::<Concurrent>();
    let [removed, added] = [1_u64, 2].map(u64::to_le_bytes);
    store.set(&removed, &value::<16>(1)).unwrap();
    let reader = {
        let store = store.clone();
        spawn(move || store.get(&removed))
    };
    store.remove(&removed);
    let writer = {
        let store = store.clone();
        spawn(move || store.set(&added, &value::<16>(2)).unwrap())
    };
    let seen = reader.join().unwrap();
    assert!(seen.is_none_or(|seen| seen == value::<16>(1)), "half of another item");
    writer.join().unwrap();
    assert_eq!(store.get(&added).as_deref(), Some(&value::<16>(2)[..]));
}

/// A set finds only free pieces that are too small and moves other items to join them. A reader finds an item that
/// moves at all times.
pub fn items_moved_together() {
    let store = small::<ConcurrentReads>();
    let mut writer = store.writer(..).unwrap();
    let mut count = 0_u64;
    while writer.set(&count.to_le_bytes(), &value::<40>(count as u8)).is_ok() {
        count += 1;
    }
    assert!(count >= 4, "only {count} items");
    writer.remove(&0_u64.to_le_bytes()).unwrap();
    writer.remove(&2_u64.to_le_bytes()).unwrap();
    let reader = {
        let store = store.clone();
        // The lowest free block is enlarged by moving the item after it.
        spawn(move || store.get(&1_u64.to_le_bytes()))
    };
    writer.set(&100_u64.to_le_bytes(), &value::<56>(100)).unwrap();
    assert!(store.stats().moved > 0);
    let seen = reader.join().unwrap();
    assert_eq!(seen.as_deref(), Some(&value::<40>(1)[..]), "it was there throughout");
}

#[test]
fn loom_space_of_a_store_is_used_again_unseen() {
    model(PREEMPTIONS, space_used_again);
}

#[test]
fn loom_items_of_a_store_are_moved_unseen() {
    model(PREEMPTIONS, items_moved_together);
}
