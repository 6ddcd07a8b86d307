//! Random operations on a store compared with a map: nothing is forgotten, and what is refused changes nothing.

use std::collections::{BTreeMap, HashMap};

use alluvium_cache::{
    Access, Concurrent, ConcurrentReads, Exclusive, OutOfSpace, SharedWrites, Store, StoreWriter, WriteError,
};
use proptest::prelude::*;
use rand::prelude::*;
use rand::rngs::StdRng;

/// A handle that writes a store of mode `A`, and reads it.
trait Handle<A: Access>: Sized {
    fn of(store: Store<A>) -> Self;
    fn store(&self) -> &Store<A>;
    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), OutOfSpace>;
    fn remove(&mut self, key: &[u8]) -> bool;
}

impl<A: SharedWrites> Handle<A> for Store<A> {
    fn of(store: Store<A>) -> Self {
        store
    }

    fn store(&self) -> &Store<A> {
        self
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), OutOfSpace> {
        Self::set(self, key, value)
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        Self::remove(self, key)
    }
}

impl Handle<ConcurrentReads> for StoreWriter {
    fn of(store: Store<ConcurrentReads>) -> Self {
        store.writer(..).unwrap()
    }

    fn store(&self) -> &Store<ConcurrentReads> {
        self
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), OutOfSpace> {
        Self::set(self, key, value).map_err(|error| match error {
            WriteError::Refused(error) => error,
            WriteError::OtherPartition(error) => panic!("{error}"),
        })
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        Self::remove(self, key).unwrap()
    }
}

fn agrees_with_a_map<A: Access, H: Handle<A>>(operations: &[(u16, Option<usize>)], keeps_places: bool) {
    let builder = Store::builder().memory_limit(256 << 10).payload_bytes_mean(100);
    let builder = if keeps_places { builder.keep_places() } else { builder };
    let mut handle = H::of(builder.build_as::<A>().unwrap());
    let mut map: HashMap<u16, Vec<u8>> = HashMap::new();
    for (stamp, &(number, len)) in operations.iter().enumerate() {
        let key = number.to_le_bytes();
        match len {
            Some(len) => {
                let value = vec![stamp as u8; len];
                match handle.set(&key, &value) {
                    Ok(()) => {
                        map.insert(number, value);
                    }
                    Err(error) => assert!(matches!(error, OutOfSpace::Item | OutOfSpace::Index)),
                }
            }
            None => assert_eq!(handle.remove(&key), map.remove(&number).is_some()),
        }
        assert_eq!(handle.store().get(&key), map.get(&number).cloned());
        if !keeps_places {
            continue;
        }
        let mut value = Vec::new();
        let place = handle.store().get_located_into(&key, &mut value);
        assert_eq!(place.map(|_| value.clone()), map.get(&number).cloned());
        if let Some(place) = place {
            let mut again = Vec::new();
            assert!(place < 1 << 48 && handle.store().get_at_into(place, &key, &mut again));
            assert_eq!(again, value);
            assert!(!handle.store().get_at_into(place, b"another", &mut again));
        }
        // Any number may be passed.
        for place in [stamp as u64 * 7, 1 << 32, u64::from(u32::MAX), u64::MAX] {
            handle.store().get_at_into(place, &key, &mut value);
        }
    }
    assert_eq!(handle.store().stats().items, map.len() as u64);
    let mut seen = 0;
    handle.store().for_each(|key, value| {
        assert_eq!(map.get(&u16::from_le_bytes([key[0], key[1]])).map(Vec::as_slice), Some(value));
        seen += 1;
    });
    assert_eq!(seen, map.len());
    let keys: Vec<[u8; 2]> = (0..700_u16).map(u16::to_le_bytes).collect();
    handle.store().get_many_with(&keys, |at, value| {
        assert_eq!(value, map.get(&(at as u16)).map(Vec::as_slice));
    });
    for number in map.keys() {
        assert!(handle.remove(&number.to_le_bytes()));
    }
    let stats = handle.store().stats();
    assert_eq!((stats.items, stats.space_bytes_used, stats.spare_buckets_used), (0, 0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_forgotten(
        operations in proptest::collection::vec(
            (0_u16..700, proptest::option::weighted(0.7, prop_oneof![0_usize..60, 0_usize..2000, 9000_usize..40_000])),
            1..1500,
        )
    ) {
        agrees_with_a_map::<Exclusive, Store<Exclusive>>(&operations, false);
        agrees_with_a_map::<ConcurrentReads, StoreWriter>(&operations, true);
        agrees_with_a_map::<Concurrent, Store<Concurrent>>(&operations, false);
    }
}

/// As many items as there should be room for, with any keys: with few buckets, their loads vary more than with many.
#[test]
fn there_is_room_for_as_many_items_as_asked_for() {
    let mut random = StdRng::seed_from_u64(23);
    for items in [100, 1000, 3000, 20_000] {
        for payload in [16, 80, 1152] {
            for _ in 0..200_000 / items {
                let store = Store::builder().payload_bytes_mean(payload).room_for(items);
                let store = store.build_as::<Exclusive>().unwrap();
                let value = vec![1; payload - 8];
                for _ in 0..items {
                    store.set(&random.random::<u64>().to_le_bytes(), &value).unwrap();
                }
            }
        }
    }
}

/// Small items, then large ones, then small ones again: each time nearly all of the space can be used.
#[test]
fn a_shift_of_sizes_finds_the_space_again() {
    let store = Store::builder().memory_limit(8 << 20).payload_bytes_mean(24).build().unwrap();
    let mut fullness = Vec::new();
    for len in [16, 5000, 16, 100_000, 900, 16] {
        let mut count = 0_u64;
        while store.set(&count.to_le_bytes(), &vec![7; len]).is_ok() {
            count += 1;
        }
        fullness.push(store.stats().space_bytes_used as f64 / store.stats().space_bytes as f64);
        assert!((0..count).all(|number| store.remove(&number.to_le_bytes())));
    }
    assert!(fullness.iter().all(|&full| full > 0.9), "{fullness:?}");
    assert_eq!(store.stats().space_bytes_used, 0);
}

/// A store is filled with items of one size, half of them are removed from low to high addresses, and then items of
/// another size are added: items move until the space is full again, nothing is forgotten, and the content is right.
#[test]
fn half_the_items_make_room_for_others_of_any_size() {
    let store = Store::builder().memory_limit(4 << 20).payload_bytes_mean(24).build().unwrap();
    let mut lens: BTreeMap<u64, usize> = BTreeMap::new();
    let mut next = 0_u64;
    let value = |number: u64, len: usize| vec![number as u8 ^ (number >> 8) as u8; len];
    for len in [16, 1000, 40, 30_000, 5000, 16, 300, 60_000, 24] {
        while store.set(&next.to_le_bytes(), &value(next, len)).is_ok() {
            lens.insert(next, len);
            next += 1;
        }
        let stats = store.stats();
        let free = stats.space_bytes - stats.space_bytes_used;
        // Either almost nothing is free, or less than the item needed.
        assert!(
            free <= stats.space_bytes / 60 || free < len as u64 + 24,
            "{free} of {} bytes free, but an item of {len} was refused",
            stats.space_bytes
        );
        for (number, &len) in &lens {
            assert_eq!(store.get(&number.to_le_bytes()), Some(value(*number, len)), "{number}");
        }
        lens.retain(|number, _| {
            let leaves = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 & 1 == next & 1;
            leaves == store.remove(&if leaves { *number } else { u64::MAX }.to_le_bytes()) && !leaves
        });
    }
    assert!(store.stats().moved > 1000);
    assert_eq!(store.stats().items, lens.len() as u64);
}

/// An item of 60 KB finds room in a full store as soon as little more than that is free, however scattered.
#[test]
fn a_large_item_finds_room_in_scattered_pieces() {
    const LEN: usize = 60_000;
    let payload_bytes_mean = 300;
    for seed in 0..if cfg!(debug_assertions) { 10 } else { 200 } {
        let store =
            Store::builder().memory_limit(4 << 20).payload_bytes_mean(payload_bytes_mean).build().unwrap();
        let mut random = StdRng::seed_from_u64(seed);
        let mut keys = Vec::new();
        let free = |store: &Store| store.stats().space_bytes - store.stats().space_bytes_used;
        for key in 0_u64.. {
            if store
                .set(&key.to_le_bytes(), &vec![1; random.random_range(16..2 * payload_bytes_mean)])
                .is_err()
            {
                break;
            }
            keys.push(key);
        }
        keys.shuffle(&mut random);
        // Each item that moves to another block may take two more words.
        while free(&store) < LEN as u64 + 8000 {
            assert!(store.remove(&keys.pop().unwrap().to_le_bytes()));
        }
        assert_eq!(store.set(b"large", &[2; LEN]), Ok(()), "seed {seed}, {} bytes free", free(&store));
        assert!(keys.iter().all(|key| store.get(&key.to_le_bytes()).is_some()));
        assert_eq!(store.get(b"large"), Some(vec![2; LEN]));
    }
}
