//! What a cache refuses, and its state afterwards.

use alluvium_cache::Cache;

#[test]
#[should_panic = "may not write"]
fn a_callback_with_lent_bytes_may_not_write() {
    let cache = Cache::builder().memory_limit(1 << 20).build_exclusive().unwrap();
    cache.set(b"key", b"value").unwrap();
    cache.get_with(b"key", |_| cache.set(b"key", b"other").unwrap());
}

#[test]
fn oversized_items_are_refused_and_change_nothing() {
    let cache = Cache::builder().memory_limit(1 << 20).build().unwrap();
    cache.set(b"key", b"value").unwrap();
    let error = cache.set(b"key", &vec![0; 1 << 20]).unwrap_err();
    assert!(cache.set(b"other", &vec![0; error.item_bytes_max - 32]).is_ok());
    assert!(cache.set(&vec![0; (64 << 10) + 1], b"").is_err());
    assert_eq!(cache.get(b"key").as_deref(), Some(&b"value"[..]));
    assert_eq!(cache.stats().total().too_large, 2);
}

#[test]
fn too_little_memory_is_refused_with_what_would_do() {
    let error = Cache::builder().memory_limit(1000).partitions(4).build().unwrap_err();
    let alluvium_cache::BuildError::MemoryTooSmall { memory_min, .. } = error else { panic!("{error}") };
    assert!(Cache::builder().memory_limit(memory_min).partitions(4).build().is_ok());
    assert!(Cache::builder().partitions(0).build().is_err());
}
