//! Numbers in settings: each is refused with a reason, or reduced as documented, and none overflows, hangs or wastes
//! memory. Linux allows a process 65,530 mappings (`vm.max_map_count`), and the largest cache takes 41,000 of them: two
//! at a time would be refused.

use alluvium_cache::{
    Access, BuildError, Builder, Cache, Concurrent, ConcurrentReads, Eviction, Exclusive, Store,
    StoreBuilder, WriteError,
};
use proptest::prelude::*;

use super::alone;

const MAX: usize = usize::MAX;
const ITEMS: u32 = 1000;

/// Numbers at which something may overflow, and some that make sense.
fn number() -> impl Strategy<Value = usize> {
    let powers = (0..usize::BITS).prop_map(|power| 1 << power);
    let extremes = proptest::sample::select(vec![
        0,
        1,
        2,
        3,
        7,
        4095,
        4097,
        65_535,
        (1 << 27) - 8,
        (1 << 32) - 1,
        (1 << 44) + 1,
        MAX / 1000,
        MAX / 2,
        MAX - 4095,
        MAX - 1,
        MAX,
    ]);
    prop_oneof![2 => powers, 3 => extremes]
}

fn eviction() -> impl Strategy<Value = Eviction> {
    proptest::sample::select(vec![Eviction::S3Fifo, Eviction::Fifo, Eviction::Lru, Eviction::ApproximateLru])
}

#[derive(Clone, Debug)]
enum Setting {
    Memory(usize),
    RoomFor(usize),
    Partitions(usize),
    ForThreads(usize),
    Mean(usize),
    Fixed(usize),
    ItemMax(usize),
    PositionBits(u32),
}

fn settings() -> impl Strategy<Value = Vec<Setting>> {
    let one = prop_oneof![
        3 => number().prop_map(Setting::Memory),
        2 => number().prop_map(Setting::RoomFor),
        1 => number().prop_map(Setting::Partitions),
        1 => number().prop_map(Setting::ForThreads),
        1 => number().prop_map(Setting::Mean),
        1 => number().prop_map(Setting::Fixed),
        1 => number().prop_map(Setting::ItemMax),
        1 => any::<u32>().prop_map(Setting::PositionBits),
    ];
    proptest::collection::vec(one, 1..4)
}

fn cache_of(settings: &[Setting], eviction: Eviction) -> Builder {
    settings.iter().fold(Cache::builder().eviction(eviction), |builder, setting| match *setting {
        Setting::Memory(bytes) => builder.memory_limit(bytes),
        Setting::RoomFor(items) => builder.room_for(items),
        Setting::Partitions(count) => builder.partitions(count),
        Setting::ForThreads(count) => builder.for_threads(count),
        Setting::Mean(bytes) => builder.payload_bytes_mean(bytes),
        Setting::Fixed(bytes) => builder.payload_bytes_fixed(bytes),
        Setting::ItemMax(bytes) => builder.item_bytes_max(bytes),
        Setting::PositionBits(bits) => builder.position_bits(bits),
    })
}

fn store_of(settings: &[Setting]) -> StoreBuilder {
    settings.iter().fold(Store::builder(), |builder, setting| match *setting {
        Setting::Memory(bytes) => builder.memory_limit(bytes),
        Setting::RoomFor(items) => builder.room_for(items),
        Setting::Partitions(count) | Setting::ForThreads(count) => builder.partitions(count),
        Setting::Mean(bytes) | Setting::Fixed(bytes) | Setting::ItemMax(bytes) => {
            builder.payload_bytes_mean(bytes)
        }
        Setting::PositionBits(_) => builder.keep_places(),
    })
}

/// The limit that `memory_min` names is sufficient.
fn is_honest<A: Access>(builder: &Builder, error: &BuildError) {
    if let BuildError::MemoryTooSmall { memory_min, .. } = *error
        && memory_min < 1 << 30
    {
        builder.clone().memory_limit(memory_min).build_as::<A>().unwrap();
    }
}

/// A cache that could be made stores items, returns them, and can be resized, swept and cleared.
fn is_of_use(cache: &Cache, limit: usize) {
    let mut set = 0;
    for number in 0..ITEMS {
        set += usize::from(cache.set(&number.to_le_bytes(), b"v").is_ok());
        if let Some(found) = cache.get(&number.to_le_bytes()) {
            assert_eq!(found, b"v");
        }
    }
    assert_eq!(set, ITEMS as usize);
    let stats = cache.stats().total();
    assert!(stats.items > 0 && stats.index_bytes_now <= stats.index_bytes);
    // Whether or not it was refused, the remaining items are right.
    let _ = cache.resize(limit);
    cache.sweep();
    assert!(cache.iter().all(|item| item.value == b"v"));
    cache.clear();
    assert!(cache.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_numbers_make_a_cache_or_a_reason(
        settings in settings(), eviction in eviction(), limit in number(), owners in number()
    ) {
        let _alone = alone();
        let builder = cache_of(&settings, eviction);
        match builder.clone().build() {
            Ok(cache) => is_of_use(&cache, limit),
            Err(error) => is_honest::<Concurrent>(&builder, &error),
        }
        match builder.clone().build_concurrent_reads() {
            Ok(cache) => cache.writer(..).unwrap().set(b"key", b"value").unwrap(),
            Err(error) => is_honest::<ConcurrentReads>(&builder, &error),
        }
        if let Ok(caches) = builder.build_exclusive_each(owners) {
            assert_eq!(caches.len(), owners);
            caches.first().unwrap().set(b"key", b"value").unwrap();
        }
    }

    #[test]
    fn any_numbers_make_a_store_or_a_reason(settings in settings(), owners in number()) {
        let _alone = alone();
        let builder = store_of(&settings);
        match builder.clone().build_as::<ConcurrentReads>() {
            Ok(store) => {
                let mut writer = store.writer(..).unwrap();
                for number in 0..ITEMS {
                    match writer.set(&number.to_le_bytes(), b"v") {
                        Ok(()) => assert_eq!(store.get(&number.to_le_bytes()).as_deref(), Some(&b"v"[..])),
                        Err(error) => assert!(matches!(error, WriteError::Refused(_))),
                    }
                }
                let mut visited = 0;
                store.for_each(|_, _| visited += 1);
                assert_eq!(visited, store.stats().items);
            }
            Err(BuildError::MemoryTooSmall { memory_min, .. }) if memory_min < 1 << 30 => {
                builder.clone().memory_limit(memory_min).build_as::<Exclusive>().unwrap();
            }
            Err(_) => {}
        }
        if let Ok(stores) = builder.build_exclusive_each(owners) {
            assert_eq!(stores.len(), owners);
        }
    }
}

/// Each number at its maximum, with default values for the others: refused by name, or the cache keeps what it is
/// given.
#[test]
fn the_largest_number_of_each_setting_is_refused_by_name_or_reduced() {
    let _alone = alone();
    let limited = Cache::builder().memory_limit(MAX).build();
    assert!(matches!(limited, Err(BuildError::MemoryTooLarge { memory_limit: MAX, .. })));
    assert!(matches!(Cache::builder().room_for(MAX).build(), Err(BuildError::MemoryTooLarge { .. })));
    let parted = Cache::builder().partitions(MAX).build();
    assert!(matches!(parted, Err(BuildError::TooManyPartitions { partitions: MAX, .. })));
    assert!(matches!(Cache::builder().build_exclusive_each(MAX), Err(BuildError::TooManyPartitions { .. })));
    assert!(matches!(Cache::builder().build_exclusive_each(0), Err(BuildError::NoPartitions)));
    for builder in [Cache::builder().payload_bytes_mean(MAX), Cache::builder().payload_bytes_fixed(MAX)] {
        let error = builder.build().unwrap_err();
        assert!(matches!(error, BuildError::PayloadTooLarge { payload_bytes: MAX, .. }), "{error}");
    }
    // An item of the mean size must fit.
    assert!(matches!(
        Cache::builder().payload_bytes_mean(64 << 20).item_bytes_max(MAX).build(),
        Err(BuildError::MemoryTooSmall { .. })
    ));
    assert!(matches!(Cache::builder().item_bytes_max(0).build(), Err(BuildError::PayloadTooLarge { .. })));
    for builder in [
        Cache::builder().item_bytes_max(MAX),
        Cache::builder().memory_limit(1 << 44),
        Cache::builder().memory_limit(1 << 30).for_threads(MAX),
    ] {
        let cache = builder.build().unwrap();
        (0..ITEMS).for_each(|number| cache.set(&number.to_le_bytes(), b"v").unwrap());
        assert_eq!(cache.len(), ITEMS as usize);
        assert!(matches!(cache.resize(MAX), Err(BuildError::MemoryTooLarge { .. })));
        assert!(matches!(cache.resize(0), Err(BuildError::MemoryTooSmall { .. })));
        assert_eq!(cache.len(), ITEMS as usize);
    }
    assert!(matches!(Store::builder().memory_limit(MAX).build(), Err(BuildError::MemoryTooLarge { .. })));
    let parted = Store::builder().partitions(2).memory_limit((64 << 30) + 1).build();
    assert!(matches!(parted, Err(BuildError::MemoryTooLarge { memory_max, .. }) if memory_max == 64 << 30));
    assert!(matches!(Store::builder().room_for(MAX).build(), Err(BuildError::MemoryTooLarge { .. })));
    assert!(matches!(Store::builder().partitions(MAX).build(), Err(BuildError::TooManyPartitions { .. })));
    assert!(matches!(
        Store::builder().payload_bytes_mean(MAX).build(),
        Err(BuildError::PayloadTooLarge { .. })
    ));
    assert!(matches!(Store::builder().memory_limit(0).build(), Err(BuildError::MemoryTooSmall { .. })));
}
