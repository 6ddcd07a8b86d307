//! The row cache beside resizes and writers: no row is older than its item.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use alluvium::{Builder, Codec, Db, Durability, RowStats};

use crate::row_cache::{key, value};

/// Real threads: each key has one writer, who reads what it wrote, while limits resize the cache and the log freezes.
fn write_and_read_beside_resizes(
    items: u32,
    versions: u32,
    settings: impl Fn(Builder) -> Builder,
) -> RowStats {
    let directory = tempfile::tempdir().unwrap();
    let builder = Db::builder(directory.path()).durability(Durability::Buffered);
    let db = settings(builder).open().unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let (db, keyspace) = (&db, &keyspace);
                scope.spawn(move || {
                    for version in 0..versions {
                        for number in (writer..items).step_by(2) {
                            keyspace.insert(key(number), value(number, version)).unwrap();
                        }
                        if writer == 0 {
                            db.flush().unwrap();
                        }
                        for number in (writer..items).step_by(2) {
                            assert_eq!(keyspace.get(key(number)).unwrap(), Some(value(number, version)));
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let limits = [Some(4 << 20), Some(8 << 20), None, Some(32 << 20)];
            for limit in limits.into_iter().cycle() {
                db.set_memory_bytes_max(limit).unwrap();
                std::thread::sleep(Duration::from_millis(3));
                if is_done.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_done.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|ended| ended.unwrap());
    });
    db.stats().rows
}

#[test]
fn no_row_is_left_behind_when_the_cache_is_resized() {
    write_and_read_beside_resizes(4_000, 12, |builder| builder.memory_bytes_max(4 << 20));
}

#[test]
fn no_compressed_row_is_left_behind() {
    for codec in [Codec::Lz4, Codec::Zstd] {
        let rows = write_and_read_beside_resizes(20_000, 4, |builder| {
            builder.memory_bytes_max(4 << 20).row_cache_bytes_max(2 << 20).compress_rows(codec)
        });
        // What the last limit left may be too little for any.
        assert!(rows.compressed_hits > 0, "{rows:?}");
        assert!(rows.compressed_bytes <= rows.bytes && rows.compressed_hits <= rows.hits, "{rows:?}");
    }
}
