//! Caches that compress what was not used.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use alluvium_cache::{Cache, Codec, Opened, SetOptions, Survive, SurviveError, SurvivingBuilder};
use alluvium_io::SimulatedClock;

use super::temporary_file::{BYTES, TemporaryFile, key};

/// The codecs that there are.
pub fn codecs() -> Vec<Codec> {
    vec![
        Codec::Lz4,
        #[cfg(feature = "zstd")]
        Codec::Zstd,
        Codec::None,
    ]
}

/// A value that belongs to its number and has something in common with others.
fn document(number: u64) -> Vec<u8> {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    format!(r#"{{"identifier":{number},"name":"{mixed:x}","is_open":true,"kind":"harbour","city":"Bergen"}}"#)
        .into_bytes()
}

#[test]
fn a_cache_that_compresses_holds_more_items_and_has_them_after_a_restart() {
    let count = |codec: Option<Codec>| {
        let file = TemporaryFile::new(&format!("compressed-{codec:?}"));
        let open = || {
            let builder = file.builder(Survive::Process);
            codec.into_iter().fold(builder, SurvivingBuilder::compressed).open().unwrap()
        };
        let cache = open();
        for number in 0..120_000 {
            cache.set(&key(number), &document(number)).unwrap();
        }
        let items: HashMap<Vec<u8>, Vec<u8>> = cache.iter().map(|item| (item.key, item.value)).collect();
        assert_eq!(items.len(), cache.iter().count(), "each once");
        let stats = cache.stats();
        drop(cache);
        let cache = open();
        assert_eq!(cache.opened(), Opened::Complete);
        assert_eq!(cache.iter().count(), items.len());
        for (key, value) in &items {
            assert_eq!(cache.get(key).as_ref(), Some(value));
        }
        for number in 0..120_000 {
            if let Some(value) = cache.get(&key(number)) {
                assert_eq!(value, document(number));
            }
        }
        if codec.is_some() {
            let again = cache.stats();
            assert!(again.unpacked > 1000 && again.promoted > 100, "{again:?}");
            assert!(stats.packed > 10_000 && stats.block_bytes > 0, "{stats:?}");
        }
        #[cfg(feature = "zstd")]
        assert!(codec != Some(Codec::Zstd) || stats.dictionaries > 0, "{stats:?}");
        items.len()
    };
    let plain = count(None);
    for codec in codecs() {
        let compressed = count(Some(codec));
        println!("{codec}: {compressed} items, {plain} without");
        let gain_percent = match codec {
            Codec::None => 90,
            Codec::Lz4 => 125,
            #[cfg(feature = "zstd")]
            Codec::Zstd => 150,
        };
        assert!(compressed * 100 > plain * gain_percent, "{codec}: {compressed} items, {plain} without");
    }
}

#[test]
fn compressed_items_keep_what_belongs_to_them_and_obey_all_writes() {
    for codec in codecs() {
        let file = TemporaryFile::new(&format!("compressed-writes-{codec}"));
        let clock = SimulatedClock::new(Duration::from_secs(1000));
        let cache = Cache::builder().memory_limit(BYTES).clock(Arc::new(clock.clone()));
        let cache = cache.survive(&file.0, Survive::Process).compressed(codec).open().unwrap();
        let lives = Duration::from_secs(50);
        for number in 0..30_000 {
            let time_to_live = (number % 3 == 0).then_some(lives);
            let options = SetOptions { flags: number as u32, time_to_live };
            cache.set_with(&key(number), &document(number), options).unwrap();
        }
        let packed = cache.stats().packed;
        assert!(packed > 1000, "{packed}");
        let mut seen = 0;
        for number in 0..30_000 {
            let found = cache.get_with(&key(number), |item| {
                assert_eq!((item.value, item.flags), (&document(number)[..], number as u32));
                assert_eq!(item.time_to_live.is_some(), number % 3 == 0);
            });
            seen += usize::from(found.is_some());
            if number % 10 == 1 {
                assert_eq!(cache.remove(&key(number)), found.is_some());
                assert_eq!(cache.get(&key(number)), None);
            }
            if number % 10 == 2 {
                // Of the length that a block may have.
                cache.set(&key(number), &vec![b'x'; 100 + number as usize % 900]).unwrap();
            }
        }
        assert!(seen > 10_000 && cache.stats().unpacked > 1000, "{seen}");
        clock.advance(lives);
        for number in 0..30_000 {
            match cache.get(&key(number)) {
                Some(value) if number % 10 == 2 => assert!(value.iter().all(|&byte| byte == b'x')),
                Some(value) => {
                    assert!(number % 10 != 1 && number % 3 != 0, "{number}");
                    assert_eq!(value, document(number));
                }
                None => {}
            }
        }
    }
}

#[test]
fn an_item_is_not_written_over_a_block() {
    let file = TemporaryFile::new("over-block");
    let cache = file.builder(Survive::Process).compressed(Codec::Lz4).open().unwrap();
    for number in 0..60_000 {
        cache.set(&key(number), &document(number)).unwrap();
    }
    let before = cache.iter().count();
    let oldest: Vec<Vec<u8>> = cache.iter().map(|item| item.key).collect();
    // Of all sizes that a block has, for keys in blocks.
    for (number, key) in oldest.iter().take(1000).enumerate() {
        cache.set(key, &vec![b'y'; number]).unwrap();
    }
    let after = cache.iter().count();
    assert!(after + 6000 > before, "{before} items, {after} afterwards");
    for item in cache.iter() {
        let is_own = item.value.iter().all(|&byte| byte == b'y');
        let number: u64 = std::str::from_utf8(&item.key[4..]).unwrap().parse().unwrap();
        assert!(is_own || item.value == document(number));
    }
}

#[test]
fn a_file_has_the_codec_that_it_was_made_with() {
    let file = TemporaryFile::new("codec");
    drop(file.open());
    let open = |codec| file.builder(Survive::Process).compressed(codec).open();
    assert!(matches!(open(Codec::Lz4), Err(SurviveError::OtherShape(_))));
    fs::remove_file(&file.0).unwrap();
    drop(open(Codec::Lz4).unwrap());
    assert!(matches!(file.refusal(), SurviveError::OtherShape(_)));
    assert!(matches!(open(Codec::None), Err(SurviveError::OtherShape(_))));
    assert_eq!(open(Codec::Lz4).unwrap().opened(), Opened::Complete);
}
