//! The compressed zone: how much it holds, and that both zones together keep the limit while they share it anew.

use alluvium_cache::{Builder, Cache, Codec, Compressed, Concurrent};

use super::{alone, resident_bytes};

const LIMIT_BYTES: usize = 64 << 20;

/// Resident bytes of the test itself, and of buffers of threads.
const SLACK_BYTES: u64 = 2 << 20;

/// A value like those of many services: a few fields, named in each.
fn value(number: u64) -> Vec<u8> {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let city = ["Amsterdam", "Berlin", "Copenhagen", "Dublin"][(mixed >> 62) as usize];
    let (latitude, longitude) = (mixed % 90_000, mixed % 180_000);
    format!("{{\"id\":{number},\"city\":\"{city}\",\"lat\":{latitude},\"lon\":{longitude},\"open\":true}}")
        .into_bytes()
}

/// Gets keys that `draw` returns, and sets those that are absent. Every value found must be right.
fn work(cache: &Cache<Concurrent>, requests: u64, mut draw: impl FnMut(u64) -> u64) -> f64 {
    let mut hits = 0;
    for request in 0..requests {
        let number = draw(request);
        let key = format!("key-{number:012}");
        match cache.get(key.as_bytes()) {
            Some(found) => {
                assert_eq!(found, value(number), "{key}");
                hits += 1;
            }
            None => cache.set(key.as_bytes(), &value(number)).unwrap(),
        }
    }
    f64::from(hits) / requests as f64
}

#[test]
fn both_zones_keep_the_limit_while_the_split_changes() {
    let _alone = alone();
    let builder = Cache::builder().memory_limit(LIMIT_BYTES).payload_bytes_mean(100);
    let plain = builder.clone().build().unwrap();
    work(&plain, 1_000_000, |request| request);
    let plain_items = plain.len();
    drop(plain);
    follow(builder.clone(), Codec::Lz4, plain_items, 14, 1.8);
    #[cfg(feature = "zstd")]
    follow(builder, Codec::Zstd, plain_items, 17, 2.5);
}

/// Works on a cache with this codec, which must hold more than `tenths` tenths of the items of a plain cache.
fn follow(builder: Builder, codec: Codec, plain_items: usize, tenths: usize, ratio: f64) {
    let before = resident_bytes();
    let cache = builder.compressed(Compressed { codec, ..Compressed::default() }).build().unwrap();
    let check = |phase: &str| {
        let taken = resident_bytes().saturating_sub(before);
        let stats = cache.stats().total();
        assert!(taken <= LIMIT_BYTES as u64 + SLACK_BYTES, "{phase}: {taken} bytes, {stats:?}");
        assert!(stats.memory_bytes <= LIMIT_BYTES as u64, "{phase}: {stats:?}");
    };
    work(&cache, 1_500_000, |request| request);
    check("load");
    let before_asking = cache.stats().total();
    let present = (0..1_500_000_u64).filter(|number| cache.contains(format!("key-{number:012}").as_bytes()));
    assert_eq!(present.count() as u64, before_asking.items);
    assert_eq!(cache.stats().total(), before_asking, "a question whether an item is there is no access");
    let stats = cache.stats().total();
    assert!(
        stats.items as usize * 10 > plain_items * tenths,
        "{} beside {plain_items}: {stats:?}",
        stats.items
    );
    assert!(stats.zone.compression_ratio() > ratio, "{stats:?}");
    assert!(stats.zone.block_bytes * 100 > stats.zone.arena_bytes * 80, "blocks lie together: {stats:?}");
    // Few keys, then all alike, then few again, others.
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        state >> 33
    };
    let mut skewed = random;
    work(&cache, 400_000, |_| (skewed() % 1000 * (skewed() % 1000)) * 7919 % 1_500_000);
    check("skewed");
    work(&cache, 400_000, |_| random() % 1_500_000);
    check("uniform");
    let hits = work(&cache, 400_000, |_| 700_000 + skewed() % 1000 * (skewed() % 100));
    check("skewed again");
    assert!(hits > 0.5, "{hits} {:?}", cache.stats().total());
    assert!(cache.stats().total().zone.promoted > 0);
    cache.clear();
    assert_eq!(cache.len(), 0);
    check("cleared");
}
