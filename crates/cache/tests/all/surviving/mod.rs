//! Caches that survive: operations, and files that are opened again.

mod compressed;
mod temporary_file;

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use alluvium_cache::{
    Cache, Codec, Cursor, Opened, Outcome, SetOptions, Survive, SurviveError, SurvivingBuilder,
    SurvivingCache, Update,
};
use alluvium_io::SimulatedClock;

use compressed::codecs;
use temporary_file::{BYTES, TemporaryFile, key};

#[test]
fn items_are_there_again_in_each_kind_of_file() {
    for survive in [Survive::Process, Survive::Pmem, Survive::Power] {
        let file = TemporaryFile::new(&format!("again-{survive:?}"));
        let cache = file.builder(survive).open().unwrap();
        assert_eq!(cache.opened(), Opened::New);
        for number in 0..1000 {
            cache.set(&key(number), &number.to_le_bytes()).unwrap();
        }
        for number in (0..1000).step_by(50) {
            assert!(cache.remove(&key(number)));
            assert!(!cache.remove(&key(number)));
            cache.set(&key(number + 1), b"replaced").unwrap();
        }
        drop(cache);
        let cache = file.builder(survive).open().unwrap();
        assert_eq!(cache.opened(), Opened::Complete);
        for number in 0..1000 {
            let found = cache.get(&key(number));
            match number % 50 {
                0 => assert_eq!(found, None),
                1 => assert_eq!(found.as_deref(), Some(&b"replaced"[..])),
                _ => assert_eq!(found.as_deref(), Some(&number.to_le_bytes()[..])),
            }
        }
        let stats = cache.stats();
        assert_eq!((stats.hits, stats.misses, stats.broken), (980, 20, 0));
        assert!(stats.file_bytes + stats.beside_bytes <= BYTES as u64);
        assert_eq!(file.as_ref().metadata().unwrap().len(), stats.file_bytes);
    }
}

#[test]
fn conditional_writes_do_what_those_of_other_caches_do() {
    let file = TemporaryFile::new("conditional");
    let cache = file.open();
    let options = SetOptions { time_to_live: None, flags: 7 };
    assert_eq!(cache.add(b"a", b"1", options), Ok(Outcome::Done));
    assert_eq!(cache.add(b"a", b"2", options), Ok(Outcome::Differs));
    assert_eq!(cache.replace(b"b", b"2", options), Ok(Outcome::Absent));
    assert_eq!(cache.compare_and_swap(b"a", b"2", b"3", options), Ok(Outcome::Differs));
    assert_eq!(cache.compare_and_swap(b"a", b"1", b"3", options), Ok(Outcome::Done));
    assert_eq!(cache.increment(b"a", 4, None), Ok(Some(7)));
    assert_eq!(cache.increment(b"c", 4, None), Ok(None));
    assert_eq!(cache.increment(b"c", 4, Some(10)), Ok(Some(14)));
    let token = cache.get_with(b"a", |item| item.token()).unwrap();
    assert_eq!(cache.set_if_unchanged(b"a", token, b"8", options), Ok(Outcome::Done));
    assert_eq!(cache.set_if_unchanged(b"a", token, b"9", options), Ok(Outcome::Differs));
    cache.update(b"a", |item| Update::Value([item.unwrap().value, b"!"].concat().into())).unwrap();
    assert_eq!(cache.get_with(b"a", |item| (item.value.to_vec(), item.flags)), Some((b"8!".to_vec(), 7)));
    cache.update(b"a", |_| Update::Remove).unwrap();
    assert!(!cache.contains(b"a") && cache.contains(b"c"));
    assert_eq!(cache.touch(b"a", None), Ok(false));
    assert!(cache.set(b"a", &vec![0; BYTES]).is_err() && cache.check_size(b"a", BYTES).is_err());
    cache.clear();
    assert_eq!(cache.iter().count(), 0);
    cache.set(b"a", b"after").unwrap();
    drop(cache);
    assert_eq!(file.open().iter().count(), 1);
}

#[test]
fn expiry_is_a_time_of_day() {
    let file = TemporaryFile::new("expiry");
    let time = SimulatedClock::new(Duration::from_millis(1_000_000));
    let open = || {
        let clock = Arc::new(time.clone());
        Cache::builder().memory_limit(BYTES).clock(clock).survive(&file.0, Survive::Process).open().unwrap()
    };
    let cache = open();
    let for_5_s = SetOptions { time_to_live: Some(Duration::from_secs(5)), flags: 0 };
    cache.set_with(b"short", b"1", for_5_s).unwrap();
    cache.set_until(b"long", b"2", 0, Some(Duration::from_millis(1_010_000))).unwrap();
    time.advance(Duration::from_secs(4));
    drop(cache);
    let cache = open();
    assert_eq!(cache.get_with(b"short", |item| item.time_to_live), Some(Some(Duration::from_secs(1))));
    time.advance(Duration::from_secs(1));
    assert_eq!(cache.get(b"short"), None);
    // Time goes back, but not for the cache.
    time.set_unix(Duration::from_millis(1_000_000));
    assert_eq!(cache.get(b"short"), None);
    assert!(!cache.remove(b"short"));
    assert_eq!(cache.get_with(b"long", |item| item.expires_at), Some(Some(Duration::from_millis(1_010_000))));
    assert_eq!(cache.touch(b"long", None), Ok(true));
    time.set_unix(Duration::from_millis(2_000_000));
    assert!(cache.contains(b"long"));
}

/// Hot items are in memory: closing and syncing bring them to the file.
#[test]
fn items_of_the_write_cache_are_there_after_closing() {
    let file = TemporaryFile::new("write-cache");
    let open = || file.builder(Survive::Pmem).write_cache_bytes(64 << 10).open().unwrap();
    let cache = open();
    for round in 0..5_u64 {
        (0..2000).for_each(|number| cache.set(&key(number), &round.to_le_bytes()).unwrap());
        let hot = round * 300..round * 300 + 300;
        (0..3).for_each(|_| hot.clone().for_each(|hot| cache.set(&key(hot), &round.to_le_bytes()).unwrap()));
    }
    assert!((0..2000).step_by(7).all(|number| cache.remove(&key(number))));
    let check = |cache: &SurvivingCache| {
        for number in 0..2000 {
            let expected = (number % 7 != 0).then_some(4_u64.to_le_bytes());
            assert_eq!(
                cache.get(&key(number)).as_deref(),
                expected.as_ref().map(|value| &value[..]),
                "{number}"
            );
        }
        let visited: HashMap<Vec<u8>, Vec<u8>> = cache.iter().map(|item| (item.key, item.value)).collect();
        assert_eq!((visited.len(), cache.iter().count()), (1714, 1714));
        assert!(visited.values().all(|value| value == &4_u64.to_le_bytes()));
    };
    check(&cache);
    let stats = cache.stats();
    assert!(stats.hot_sets > 100 && stats.cooled > 100, "{stats:?}");
    assert!(stats.file_bytes + stats.beside_bytes <= BYTES as u64, "{stats:?}");
    cache.sync().unwrap();
    check(&cache);
    assert_eq!(cache.increment(b"count", 1, Some(0)), Ok(Some(1)));
    assert!((2..9).all(|count| cache.increment(b"count", 1, None) == Ok(Some(count))));
    assert!(cache.remove(b"count"));
    (0..3).for_each(|_| cache.set(&key(1), &4_u64.to_le_bytes()).unwrap());
    drop(cache);
    check(&open());
    // Without a write cache the file has more room, which is another shape.
    assert!(matches!(file.builder(Survive::Pmem).open(), Err(SurviveError::OtherShape(_))));
}

/// More items than there is room for: those that are used stay.
#[test]
fn items_that_are_used_are_kept() {
    let file = TemporaryFile::new("kept");
    let cache = file.open();
    let value = [7; 100];
    for number in 0..200_000 {
        cache.set(&key(number), &value).unwrap();
        if number % 20 == 0 {
            let hot = key(number / 20 % 100);
            if cache.get(&hot).is_none() {
                cache.set(&hot, &value).unwrap();
            }
        }
    }
    let hot = (0..100).filter(|&number| cache.contains(&key(number))).count();
    let stats = cache.stats();
    assert!(hot > 90, "{hot} {stats:?}");
    assert!(stats.kept > 500 && stats.cleanings > 100 && stats.evicted > 100_000, "{stats:?}");
    // Of some keys the bucket is full.
    assert!(stats.evicted_by_index < stats.inserted / 12, "{stats:?}");
    let count = cache.iter().count() as u64;
    assert!(count > 18_000, "{count} items of 128 bytes in 4 MiB");
    assert!(count.abs_diff(cache.len_estimate()) < count / 3, "{count} {}", cache.len_estimate());
    drop(cache);
    let cache = file.open();
    assert_eq!(cache.iter().count() as u64, count);
    // Batches, and a scan by numbers.
    let keys: Vec<Vec<u8>> = (199_000..200_000).map(key).collect();
    assert!(cache.get_many(&keys).iter().flatten().count() > 900);
    assert_eq!(cache.remove_many(&keys), cache.stats().removed as usize);
    cache.set_many(&keys.iter().map(|key| (key, b"many")).collect::<Vec<_>>()).unwrap();
    let many: Vec<Vec<u8>> = cache.get_many(&keys).into_iter().flatten().collect();
    assert!(many.len() > 950 && many.iter().all(|value| value == b"many"), "{}", many.len());
    let (mut cursor, mut seen) = (0, HashMap::new());
    loop {
        let next = cache.scan(Cursor::from_bits(cursor), 2, |key, _| {
            *seen.entry(key.to_vec()).or_insert(0) += 1;
        });
        let Some(next) = next else { break };
        cursor = next.to_bits();
    }
    assert_eq!(seen.len(), cache.iter().count());
    assert!(seen.values().all(|&times| times == 1));
}

#[test]
fn threads_see_whole_values_while_zones_are_cleaned() {
    threads(None, BYTES);
}

#[test]
fn threads_see_whole_values_while_zones_are_compressed() {
    for codec in codecs() {
        // Half of the keys do not fit without compression.
        threads(Some(codec), BYTES / 8);
    }
}

fn threads(codec: Option<Codec>, bytes: usize) {
    let file = TemporaryFile::new(&format!("threads-{codec:?}"));
    let cache = Cache::builder().memory_limit(bytes).partitions(2).survive(&file.0, Survive::Pmem);
    let cache = codec.into_iter().fold(cache, SurvivingBuilder::compressed).open().unwrap();
    let value = |key: u64, round: u64| [key.to_le_bytes(), round.to_le_bytes()].concat().repeat(8);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let cache = &cache;
            scope.spawn(move || {
                for round in 0..150_000_u64 {
                    let number = (round * 7 + writer) % 3000;
                    cache.set(&key(number), &value(number, round)).unwrap();
                    if round % 5 == 0 {
                        cache.remove(&key(number + 1));
                    }
                }
            });
        }
        scope.spawn(|| {
            for round in 0..300_000_u64 {
                let number = round % 3000;
                cache.get_with(&key(number), |item| {
                    let round = u64::from_le_bytes(*item.value[8..].first_chunk().unwrap());
                    assert_eq!(item.value, value(number, round));
                });
            }
        });
    });
    let stats = cache.stats();
    assert!(stats.cleanings > 10, "{stats:?}");
    assert!(codec.is_none() || stats.packed > 1000, "{stats:?}");
}

#[test]
fn files_that_are_no_such_caches_are_refused_and_stay() {
    let file = TemporaryFile::new("refused");
    fs::write(&file, b"a letter to somebody").unwrap();
    let refusal = file.refusal();
    assert!(matches!(refusal, SurviveError::Foreign(_)), "{refusal}");
    assert_eq!(fs::read(&file).unwrap(), b"a letter to somebody");
    let cache = file.builder(Survive::Process).reset(true).open().unwrap();
    assert_eq!(cache.opened(), Opened::New);
    cache.set(b"key", b"value").unwrap();
    let refusal = file.builder(Survive::Process).reset(true).open().unwrap_err();
    let pid = std::process::id().to_string();
    assert!(matches!(&refusal, SurviveError::InUse { holder, .. } if holder.contains(&pid)), "{refusal}");
    drop(cache);

    let other = Cache::builder().memory_limit(2 * BYTES).survive(&file.0, Survive::Process).open();
    let refusal = other.unwrap_err();
    assert!(matches!(refusal, SurviveError::OtherShape(_)), "{refusal}");
    assert!(refusal.to_string().contains(file.0.to_str().unwrap()), "{refusal}");
    let len = file.as_ref().metadata().unwrap().len();
    let set_len = |len| fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(len).unwrap();
    set_len(len - 4096);
    let refusal = file.refusal();
    assert!(matches!(&refusal, SurviveError::Damaged(what) if what.offset == len - 4096), "{refusal}");
    set_len(len);
    assert_eq!(file.open().get(b"key").as_deref(), Some(&b"value"[..]));

    // A zone without a version.
    file.overwrite(4096 + 64, &[0; 8]);
    let refusal = file.refusal();
    assert!(matches!(&refusal, SurviveError::Damaged(what) if what.offset == 4096 + 64), "{refusal}");
    file.overwrite(4096 + 64, &1_u64.to_le_bytes());
    assert!(file.open().contains(b"key"));
    file.overwrite(8, &3_u64.to_le_bytes());
    assert!(matches!(file.refusal(), SurviveError::Newer(_)));
}

/// What the system's crash leaves of a file without flushes is not known, so nothing of it is used.
#[test]
fn content_of_another_boot_is_dropped_unless_it_was_closed() {
    let file = TemporaryFile::new("boot");
    let cache = file.open();
    cache.set(b"key", b"value").unwrap();
    drop(cache);
    // Closed: the boot does not matter.
    file.overwrite(1024 + 8, &[1; 16]);
    assert_eq!(file.open().opened(), Opened::Complete);
    // Left open in this boot, and then in another one.
    for (boot, opened) in [(None, Opened::Complete), (Some([1; 16]), Opened::Dropped)] {
        file.overwrite(1024, &1_u64.to_le_bytes());
        if let Some(boot) = boot {
            file.overwrite(1024 + 8, &boot);
        }
        let cache = file.open();
        assert_eq!(cache.opened(), opened);
        assert_eq!(cache.contains(b"key"), opened == Opened::Complete);
    }
    // If it was flushed, it is used as far as it survived: by the session that left it.
    for (survive, opened) in [(Survive::Process, Opened::Dropped), (Survive::Power, Opened::AfterCrash)] {
        let cache = file.builder(survive).open().unwrap();
        cache.set(b"key", b"value").unwrap();
        drop(cache);
        file.overwrite(1024, &1_u64.to_le_bytes());
        file.overwrite(1024 + 8, &[1; 16]);
        let cache = file.builder(Survive::Power).open().unwrap();
        assert_eq!(cache.opened(), opened);
        assert_eq!(cache.contains(b"key"), opened == Opened::AfterCrash);
    }
}

/// Any bytes behind a right header: nothing panics, and no more items are found than there are descriptors.
#[test]
fn damaged_buckets_and_zones_only_lose_items() {
    let file = TemporaryFile::new("damaged");
    let cache = file.open();
    (0..5000).for_each(|number| cache.set(&key(number), &[3; 60]).unwrap());
    let tables_end = 4096 + 64 * (1 + cache.stats().zones);
    drop(cache);
    let len = file.as_ref().metadata().unwrap().len();
    for step in [97_u64, 1009, 5003] {
        for at in (tables_end..len - 8).step_by(step as usize) {
            file.overwrite(at, &at.wrapping_mul(step << 40 | 0x1234_5671).to_le_bytes());
        }
        let cache = file.open();
        (0..5000).for_each(|number| {
            if let Some(found) = cache.get(&key(number)) {
                assert_eq!(found, [3; 60]);
            }
        });
        (0..60_000).for_each(|number| cache.set(&key(number), &[3; 60]).unwrap());
        assert!(cache.iter().count() > 10_000);
    }
}
