//! Changes of an item that depend on its content.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use alluvium_cache::{Cache, Clock, Cursor, Update};

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

/// A clock that started long ago.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn monotonic(&self) -> Duration {
        Duration::from_secs(1_000_000)
    }

    fn unix(&self) -> Duration {
        self.monotonic()
    }

    fn sleep(&self, _: Duration) {}
}

#[test]
fn an_expiry_is_returned_as_it_was_given() {
    let cache = Cache::builder().memory_limit(1 << 20).clock(Arc::new(Still)).build().unwrap();
    let seen = || cache.get_with(b"key", |item| (item.value.len(), item.flags, item.expires_at));
    let at = |ms: u64| Some(Duration::from_millis(1_000_000_000 + ms));
    cache.set_until(b"key", b"value", 7, at(1)).unwrap();
    assert_eq!(seen(), Some((5, 7, at(1))));
    cache.update(b"key", |_| Update::SetUntil(b"v"[..].into(), 0, at(12_345))).unwrap();
    assert_eq!(seen(), Some((1, 0, at(12_345))));
    cache.set_until(b"key", b"value", 7, None).unwrap();
    assert_eq!(seen(), Some((5, 7, None)));
    cache.set_until(b"key", b"value", 7, at(0)).unwrap();
    assert_eq!(seen(), None, "it is over");
}

#[test]
fn a_scan_continues_with_the_number_of_a_cursor() {
    let cache = Cache::builder().memory_limit(8 << 20).partitions(3).build().unwrap();
    (0..10_000u32).for_each(|key| cache.set(&key.to_le_bytes(), b"value").unwrap());
    let (mut keys, mut bits, mut calls) = (BTreeSet::new(), 0, 0);
    loop {
        let next = cache.scan(Cursor::from_bits(bits), 2, |key, _| {
            keys.insert(key.to_vec());
        });
        calls += 1;
        match next.map(Cursor::to_bits) {
            Some(next) => assert!(std::mem::replace(&mut bits, next) < next && next > 0),
            None => break,
        }
    }
    assert_eq!(keys.len(), 10_000);
    assert!(calls < 5_000);
}

#[test]
fn a_size_that_passes_the_check_is_stored() {
    let cache = Cache::builder().memory_limit(1 << 20).build().unwrap();
    let fits = (0..1 << 20).rev().step_by(8).find(|bytes| cache.check_size(b"key", *bytes).is_ok()).unwrap();
    cache.set_until(b"key", &vec![0; fits], 1, Some(Duration::from_secs(100))).unwrap();
    assert!(cache.check_size(&[0; 70_000], 1).is_err());
    assert!(fits > 100_000);
}
