//! Compressed rows: the row cache with a compressed zone.

use alluvium::{Builder, Codec, Db, Durability};

#[test]
fn compressed_rows_answer_more_gets_in_the_same_memory() {
    let hits = |settings: fn(Builder) -> Builder| {
        let directory = tempfile::tempdir().unwrap();
        let builder = Db::builder(directory.path()).durability(Durability::Buffered);
        let db = settings(builder.row_cache_bytes_max(4 << 20)).open().unwrap();
        let keyspace = db.keyspace("k").unwrap();
        let value =
            |number: u32| format!("{{\"number\":{number},\"name\":\"a name\",\"place\":\"a place\"}}");
        for number in 0..64_000_u32 {
            keyspace.insert(number.to_le_bytes(), value(number)).unwrap();
        }
        db.flush().unwrap();
        for round in 0..3 {
            for number in 0..64_000_u32 {
                // Half of the gets are of a quarter of the keys.
                let number = if number % 2 == 0 { number / 4 } else { (number * 7 + round) % 64_000 };
                let found = keyspace.get(number.to_le_bytes()).unwrap();
                assert_eq!(found.as_deref(), Some(value(number).as_bytes()));
            }
        }
        let rows = db.stats().rows;
        assert!(rows.bytes <= 4 << 20, "{rows:?}");
        rows.hits
    };
    let (plain, compressed) = (hits(|builder| builder), hits(|builder| builder.compress_rows(Codec::Lz4)));
    assert!(compressed as f64 > 1.05 * plain as f64, "{compressed} {plain}");
}
