//! Who may write: one writer per partition, and no function that decides about an item.

use std::panic::{AssertUnwindSafe, catch_unwind};

use alluvium_cache::{
    Cache, ClaimError, ConcurrentReads, Eviction, OtherPartition, Store, Update, WriteError,
};

#[test]
fn a_partition_has_one_writer_at_a_time() {
    let cache = Cache::builder().memory_limit(4 << 20).partitions(4).build_concurrent_reads().unwrap();
    let writer = cache.writer(1..3).unwrap();
    assert_eq!(writer.range(), 1..3);
    assert_eq!(cache.writer(..).unwrap_err(), ClaimError::Taken { partition: 1 });
    // The refused claims have taken nothing.
    let others = (cache.writer(0..1).unwrap(), cache.writer(3..).unwrap());
    assert_eq!(cache.writer(2..=2).unwrap_err(), ClaimError::Taken { partition: 2 });
    drop(others);
    drop(writer);
    let mut writer = cache.writer(..).unwrap();
    // A writer outlives the cache from which it was taken.
    drop(cache);
    writer.set(b"key", b"value").unwrap();
    assert_eq!(writer.get(b"key").as_deref(), Some(&b"value"[..]));
}

#[test]
fn ranges_without_partitions_have_no_writer() {
    let cache = Cache::builder().partitions(2).build_concurrent_reads().unwrap();
    let none = Err(ClaimError::NoSuchPartition { partitions: 2 });
    #[allow(clippy::reversed_empty_ranges)]
    for range in [0..0, 1..3, 2..2, 2..1, usize::MAX..usize::MAX] {
        assert_eq!(cache.writer(range).map(|writer| writer.range()), none);
    }
    assert_eq!(cache.writer(0..=usize::MAX).map(|writer| writer.range()), none);
    let store = Store::builder().build_as::<ConcurrentReads>().unwrap();
    assert_eq!(
        store.writer(1..).map(|writer| writer.range()).unwrap_err(),
        ClaimError::NoSuchPartition { partitions: 1 }
    );
}

#[test]
fn a_writer_refuses_the_keys_of_other_partitions() {
    let cache = Cache::builder().memory_limit(4 << 20).partitions(2).build_concurrent_reads().unwrap();
    let store = Store::builder().memory_limit(4 << 20).partitions(2).build_as::<ConcurrentReads>().unwrap();
    let (mut writer, mut storing) = (cache.writer(..1).unwrap(), store.writer(..1).unwrap());
    let mut own = 0;
    for number in 0..100_u32 {
        let key = number.to_le_bytes();
        let other = OtherPartition { partition: 1 };
        if cache.partition_of(&key) == 1 {
            assert_eq!(writer.set(&key, b"value"), Err(WriteError::OtherPartition(other)));
            assert_eq!(writer.increment(&key, 1, Some(1)), Err(WriteError::OtherPartition(other)));
            assert_eq!(writer.remove(&key), Err(other));
        } else {
            own += 1;
        }
        if store.partition_of(&key) == 1 {
            assert_eq!(storing.set(&key, b"value"), Err(WriteError::OtherPartition(other)));
            assert_eq!(storing.remove(&key), Err(other));
        }
    }
    // A batch sets the items that it may write.
    let items: Vec<([u8; 4], &[u8])> =
        (0..100_u32).map(|number| (number.to_le_bytes(), &b"value"[..])).collect();
    assert!(matches!(writer.set_many(&items), Err(WriteError::OtherPartition(_))));
    assert_eq!(cache.len(), own);
}

/// Whether a write from within a function that decides about an item is refused at once.
fn is_refused(update: impl FnOnce()) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(update));
    outcome.is_err_and(|reason| {
        reason.downcast_ref::<&str>().is_some_and(|reason| reason.contains("may not write"))
    })
}

#[test]
fn a_function_that_decides_may_read_but_not_write() {
    for eviction in [Eviction::S3Fifo, Eviction::Lru] {
        let builder = Cache::builder().memory_limit(1 << 20).eviction(eviction);
        let shared = builder.clone().partitions(2).build().unwrap();
        let other = builder.clone().build().unwrap();
        let exclusive = builder.build_exclusive().unwrap();
        for number in 0..100_u32 {
            let key = number.to_le_bytes();
            for cache in [&shared, &other] {
                cache.set(&key, b"value").unwrap();
            }
            exclusive.set(&key, b"value").unwrap();
        }
        for number in 0..100_u32 {
            let key = number.to_le_bytes();
            // For the same partition and for the other one: the refusal does not depend on chance.
            assert!(is_refused(|| {
                let seven = 7_u32.to_le_bytes();
                let _ = shared.update(&seven, |_| {
                    shared.set(&key, b"another").unwrap();
                    Update::Keep
                });
            }));
            assert!(is_refused(|| {
                let seven = 7_u32.to_le_bytes();
                let _ = exclusive.update(&seven, |_| {
                    exclusive.remove(&key);
                    Update::Keep
                });
            }));
            // Another cache may be written, but not this one from within that write.
            assert!(is_refused(|| {
                let _ = shared.update(&key, |_| {
                    let _ = other.update(&key, |_| {
                        shared.set(&key, b"another").unwrap();
                        Update::Keep
                    });
                    Update::Keep
                });
            }));
            let read = |cache: &dyn Fn(&[u8]) -> Option<Vec<u8>>| {
                (0..100_u32).for_each(|number| assert!(cache(&number.to_le_bytes()).is_some()));
                Update::Value(b"after"[..].into())
            };
            shared.update(&key, |_| read(&|key| shared.get(key))).unwrap();
            exclusive.update(&key, |_| read(&|key| exclusive.get(key))).unwrap();
            other.update(&key, |_| Update::Remove).unwrap();
            assert_eq!(shared.get(&key).as_deref(), Some(&b"after"[..]));
            assert_eq!(exclusive.get(&key).as_deref(), Some(&b"after"[..]));
        }
        // The refused writes left no lock or loan behind.
        shared.set(b"key", b"value").unwrap();
        exclusive.set(b"key", b"value").unwrap();
    }
}
