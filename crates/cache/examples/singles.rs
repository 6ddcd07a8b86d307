//! Gets or sets of one item at a time, or gets in batches, for counting their instructions with callgrind: run it twice
//! with different numbers of rounds and take the difference.
//!
//! ```text
//! cargo build --release -p alluvium-cache --example singles
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/examples/singles 16 64 10
//! ```

use alluvium_cache::{BATCH_LEN, Cache, Store};

const ITEMS: u64 = 1000;

/// Arguments: bytes of a key, bytes of a value, rounds over all items; `cache` or `store`; and `set` for sets, `batch`
/// for batches of gets from a cache.
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(8_usize);
    let (key_bytes, value_bytes, rounds) = (number(0).max(8), number(1), number(2));
    let mut keys = vec![vec![b'k'; key_bytes]; ITEMS as usize];
    for (number, key) in (0..ITEMS).zip(&mut keys) {
        key[key_bytes - 8..].copy_from_slice(&number.to_le_bytes());
    }
    let is_set = arguments.get(4).is_some_and(|operation| operation == "set");
    let value = vec![b'v'; value_bytes];
    let mut found = 0;
    if arguments.get(3).is_some_and(|mode| mode == "store") {
        let builder = Store::builder().memory_limit(4 << 20).payload_bytes_mean(key_bytes + value_bytes);
        let store = builder.build().expect("memory");
        keys.iter().for_each(|key| store.set(key, &value).expect("room"));
        for key in std::iter::repeat_n(&keys, rounds).flatten() {
            if is_set {
                store.set(key, &value).expect("room");
            } else {
                found += usize::from(store.get_with(key, |found| found.len() == value_bytes) == Some(true));
            }
        }
    } else {
        let cache = Cache::builder()
            .memory_limit(4 << 20)
            .payload_bytes_fixed(key_bytes + value_bytes)
            .build()
            .expect("memory");
        keys.iter().for_each(|key| cache.set(key, &value).expect("room"));
        let is_batch = arguments.get(4).is_some_and(|operation| operation == "batch");
        let batches = std::iter::repeat_n(&keys, if is_batch { rounds } else { 0 });
        for batch in batches.flat_map(|keys| keys.chunks(BATCH_LEN)) {
            cache.get_many_with(batch, |_, item| {
                found += usize::from(item.is_some_and(|item| item.value.len() == value_bytes));
            });
        }
        for key in std::iter::repeat_n(&keys, if is_batch { 0 } else { rounds }).flatten() {
            if is_set {
                cache.set(key, &value).expect("room");
            } else {
                found +=
                    usize::from(cache.get_with(key, |item| item.value.len() == value_bytes) == Some(true));
            }
        }
    }
    println!("{found} of {}", rounds * keys.len());
}
