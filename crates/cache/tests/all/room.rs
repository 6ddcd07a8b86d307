//! With room for all items, none is forgotten.

use alluvium_cache::{Cache, Eviction};

#[test]
fn nothing_is_forgotten_without_need() {
    let evictions = [Eviction::S3Fifo, Eviction::Fifo, Eviction::Lru, Eviction::ApproximateLru];
    let builders = evictions.map(|eviction| Cache::builder().payload_bytes_mean(40).eviction(eviction));
    let inline = [Cache::builder().payload_bytes_mean(8), Cache::builder().payload_bytes_fixed(40)];
    for builder in builders.into_iter().chain(inline) {
        let cache = builder.clone().memory_limit(64 << 20).build().unwrap();
        for number in 0..100_000_u32 {
            cache.set(&number.to_le_bytes(), &number.to_be_bytes()).unwrap();
        }
        for number in 0..100_000_u32 {
            let value = cache.get(&number.to_le_bytes());
            assert_eq!(value.as_deref(), Some(&number.to_be_bytes()[..]), "{builder:?} {number}");
        }
        assert_eq!(cache.len(), 100_000);
    }
}
