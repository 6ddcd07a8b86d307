//! Numbers in settings at their extremes: a database opens, works and stays small, or explains why it does not.

use std::sync::Arc;
use std::time::Duration;

use alluvium::{
    Builder, Db, Durability, Environment, Error, Keyspace, KeyspaceOptions, LevelsPlan, Plan, PrefixRule,
};
use alluvium_io::SimulatedStorage;
use proptest::prelude::*;

/// Maximum memory that the tests of this file may take together: 1,024 shards of some keyspaces, their log segments,
/// and what the planner compares.
#[cfg(target_os = "linux")]
const RESIDENT_KIB_MAX: u64 = 768 << 10;

#[cfg(target_os = "linux")]
fn check_resident() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < RESIDENT_KIB_MAX, "{kib} KiB");
}

#[cfg(not(target_os = "linux"))]
fn check_resident() {}

fn extremes() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(4095),
        Just(5 << 20),
        Just(1 << 40),
        Just(u64::MAX / 2),
        Just(u64::MAX - 1),
        Just(u64::MAX),
        any::<u64>()
    ]
}

fn optional() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![2 => Just(None), 1 => extremes().prop_map(Some)]
}

fn durations() -> impl Strategy<Value = Durability> {
    let interval = prop_oneof![Just(Duration::ZERO), Just(Duration::from_nanos(1)), Just(Duration::MAX)];
    prop_oneof![
        Just(Durability::Buffered),
        Just(Durability::Process),
        interval.prop_map(Durability::Interval)
    ]
}

/// Writes, flushes and reads; writes may be refused because of too little room.
fn is_used(items: &Keyspace, db: &Db) -> Result<(), Error> {
    let key = |number: u32| format!("dir{}/{number}", number % 5);
    for number in 0..300u32 {
        let len = if number % 50 == 0 { 5000 } else { 40 };
        items.insert(key(number), vec![number as u8; len])?;
    }
    db.flush()?;
    for number in (0..300).step_by(7) {
        assert!(items.get(key(number))?.is_some());
    }
    assert_eq!(items.iter().filter(Result::is_ok).count(), 300);
    let mut ingest = items.ingest()?;
    (300..600u32).try_for_each(|number| ingest.insert(key(number), [1; 30]))?;
    ingest.finish()?;
    let (mut found, mut cursor) = (0, 0);
    loop {
        let (page, next) = items.scan(cursor, usize::MAX)?;
        found += page.len();
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(found, 600);
    assert!(items.scan(u64::MAX, 0)?.0.len() <= 1);
    db.stats().memory.total();
    Ok(())
}

/// Errors with which a number may be refused.
fn is_explained(error: &Error) -> bool {
    matches!(error, Error::MemoryLimit { .. } | Error::DiskQuota { .. } | Error::Plan(_))
}

/// On a disk in memory, since settings may cause many small files and reads.
fn check(builder: Builder, options: &[KeyspaceOptions]) {
    let environment = Environment::over(Arc::new(SimulatedStorage::new(1)));
    let used = builder.environment(environment).open().and_then(|db| {
        for (number, options) in options.iter().enumerate() {
            is_used(&db.keyspace_with(&format!("items{number}"), options)?, &db)?;
        }
        db.close()
    });
    if let Err(error) = used {
        assert!(is_explained(&error), "{error}");
    }
    check_resident();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn extreme_settings_work_or_say_why_not(
        (expected, inline, ingest, index) in (extremes(), extremes(), extremes(), extremes()),
        (memory, disk, rate) in (optional(), optional(), optional()),
        (file, aligned, garbage) in (extremes(), extremes(), extremes()),
        (table_min, table_max) in (extremes(), extremes()),
        durability in durations(),
        name in prop::sample::select(&["silt", "silt-tiering", "tiered", "lsm-trie", "leveled"][..]),
        background: bool,
    ) {
        let mut builder = Db::builder("settings")
            .plan(Plan::named(name).unwrap())
            .durability(durability)
            .expected_items(expected)
            .inline_bytes_max(inline as usize)
            .ingest_sort_bytes_max(ingest)
            .blob_sizes(file, aligned as usize, garbage)
            .garbage_bytes_min(index)
            .table_sizes(table_min, table_max)
            .background(background);
        if let Some(bytes) = memory {
            builder = builder.memory_bytes_max(bytes);
        }
        if let Some(bytes) = disk {
            builder = builder.disk_bytes_max(bytes);
        }
        if let Some(rate) = rate.filter(|&rate| rate == 0 || rate > 1 << 20) {
            // A limit of 0 counts as 1, under which merges never end.
            builder = builder.background_bytes_per_s_max(if rate == 0 { u64::MAX } else { rate });
        }
        let slash = PrefixRule::Delimiter { byte: b'/' };
        check(builder, &[KeyspaceOptions::default(), KeyspaceOptions::semi_sorted(slash)]);
    }

    #[test]
    fn extreme_plans_work_or_say_why_not(
        shards_max: u32,
        shards_bits in 0..32u32,
        items_per_shard in extremes(),
        log_entries in prop_oneof![Just(0), Just(64), Just(1 << 20), Just(u32::MAX)],
        log_share in prop::sample::select(&[f64::NAN, 0.0, 5e-324, 0.5, 0.999_999, f64::INFINITY][..]),
        segment in extremes(),
        runs_max in prop_oneof![Just(0), Just(1), Just(2), Just(4096), Just(u32::MAX)],
        share in prop::sample::select(&[f64::NAN, -1.0, 5e-324, 0.5, 0.999_999, 1.0][..]),
        ratio in prop::sample::select(&[f64::NAN, 1.0, 1.000_000_1, 1e6, f64::MAX][..]),
        is_power: bool,
    ) {
        use alluvium_model::Growth;
        let LevelsPlan { mut sharding, mut log, mut levels } = LevelsPlan::silt();
        sharding.shards_max = if is_power { 1 << shards_bits } else { shards_max };
        sharding.items_per_shard = items_per_shard;
        sharding.log_entries_per_shard = log_entries;
        sharding.log_share = log_share;
        log.segment_bytes_max = segment;
        levels[0].growth = Growth::Tiering { runs_max, share };
        levels[1].growth = Growth::Leveling { ratio };
        let builder = Db::builder("settings").durability(Durability::Buffered);
        let plan = Plan::Levels(LevelsPlan { sharding, log, levels });
        check(builder.expected_items(u64::MAX), &[KeyspaceOptions::default().with_plan(plan)]);
    }
}

#[test]
fn any_number_of_items_may_be_expected() {
    for items in [0, 1, 1_000_000_000_000, u64::MAX] {
        let directory = tempfile::tempdir().unwrap();
        let builder = Db::builder(directory.path()).durability(Durability::Buffered);
        let db = builder.expected_items(items).open().unwrap();
        let items = db.keyspace("items").unwrap();
        (0..20_000u32).for_each(|number| items.insert(number.to_le_bytes(), [1; 50]).unwrap());
        db.flush().unwrap();
        assert_eq!(items.iter().filter(Result::is_ok).count(), 20_000);
        check_resident();
    }
}

#[test]
fn limits_of_nothing_are_no_lack_of_limits() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path()).disk_bytes_max(0).open().unwrap();
    let items = db.keyspace("items").unwrap();
    assert!(matches!(items.insert("key", "value"), Err(Error::DiskQuota { .. })));
    drop((items, db));
    let opened = Db::builder(directory.path()).memory_bytes_max(0).open();
    assert!(matches!(opened, Err(Error::MemoryLimit { .. })));
}
