//! Changes of an item that depend on its content.
#![cfg(not(loom))]

use alluvium_cache::{Cache, Update};

/// A callback may change an item without copying it first, and no other write interferes.
#[test]
fn updates_see_what_is_there() {
    let cache = Cache::builder().memory_limit(1 << 20).build().unwrap();
    let append = |piece: &'static [u8]| {
        cache
            .update(b"list", |item| {
                let mut value = item.map_or(Vec::new(), |item| item.value.to_vec());
                value.extend_from_slice(piece);
                Update::Value(value.into())
            })
            .unwrap();
    };
    append(b"one");
    append(b"two");
    assert_eq!(cache.get(b"list").as_deref(), Some(&b"onetwo"[..]));
    cache.update(b"list", |_| Update::Remove).unwrap();
    assert_eq!(cache.get(b"list"), None);
    assert!(cache.is_empty());
}
