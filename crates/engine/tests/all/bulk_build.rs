//! Bulk builds: shards that are written apart, committed, read as a whole and adopted.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use alluvium::{
    AdoptOptions, BuildJob, BuildPart, CommitOptions, Db, Error, HashKey, Metadata, Order, Plan, PrefixRule,
    RepairOptions, ShardOptions, ShardWriter, VersionState, abort_build, adopt, build_shards, commit_build,
    repair, shard_directory, versions,
};
use proptest::prelude::*;

type Items = BTreeMap<Vec<u8>, Vec<u8>>;

fn job(shards: u32) -> BuildJob {
    BuildJob::new("nightly", HashKey::from_bytes([7; 16]), shards)
}

fn write_shard(
    root: &Path,
    job: &BuildJob,
    shard: u32,
    items: &[(Vec<u8>, Vec<u8>)],
) -> alluvium::Result<()> {
    let options = ShardOptions::default();
    let mut writer = ShardWriter::create(shard_directory(root, shard), job, shard, &options)?;
    for (key, value) in items.iter().filter(|(key, _)| job.shard_of(key) == shard) {
        writer.insert(key, value)?;
    }
    writer.finish().map(drop)
}

fn build(root: &Path, job: &BuildJob, items: &[(Vec<u8>, Vec<u8>)]) {
    (0..job.shards).for_each(|shard| write_shard(root, job, shard, items).unwrap());
    commit_build(root, &CommitOptions { job: Some(job.clone()), ..CommitOptions::default() }).unwrap();
}

fn numbered(count: u32) -> Vec<(Vec<u8>, Vec<u8>)> {
    let item = |number: u32| (number.to_le_bytes().to_vec(), vec![number as u8; 40 + number as usize % 50]);
    (0..count).map(item).collect()
}

fn content(db: &Db, keyspace: &str) -> Items {
    db.keyspace(keyspace).unwrap().iter().map(|item| item.unwrap()).collect()
}

fn check(db: &Db, keyspace: &str, expected: &Items) {
    assert!(content(db, keyspace) == *expected);
    let keyspace = db.keyspace(keyspace).unwrap();
    for (key, value) in expected {
        assert_eq!(keyspace.get(key).unwrap().as_ref(), Some(value));
    }
    assert_eq!(keyspace.get(b"no such key").unwrap(), None);
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert!(report.items >= expected.len() as u64);
}

/// The files of a directory with this prefix.
fn files(directory: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(prefix)).collect()
}

fn part_of(error: &Error) -> Option<BuildPart> {
    match error {
        Error::Build(mismatch) => Some(mismatch.part),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The reference is a map to which the items are added in the same order.
    #[test]
    fn what_is_built_is_what_was_added(
        items in prop::collection::vec(
            (prop::collection::vec(0u8..4, 1..6), 0usize..3, 0u8..255), 0..200,
        ),
        shards in 1u32..6,
        is_semi_sorted: bool,
    ) {
        let lengths = [10, 700, 5000];
        let items: Vec<(Vec<u8>, Vec<u8>)> = items
            .into_iter()
            .map(|(key, len, byte)| (key, vec![byte; lengths[len]]))
            .collect();
        let expected: Items = items.iter().cloned().collect();
        let mut job = job(shards);
        if is_semi_sorted {
            let prefix = PrefixRule::Length { bytes: 1 };
            job.order = Order::SemiSorted { prefix, lists_prefixes: true };
        }
        let directory = tempfile::tempdir().unwrap();
        let [root, data] = ["build", "data"].map(|name| directory.path().join(name));
        build(&root, &job, &items);
        check(&Db::open_read_only(&root).unwrap(), "default", &expected);
        let adopted = adopt(&root, &data, &AdoptOptions::default()).unwrap();
        assert_eq!(adopted.copied_files, 0);
        fs::remove_dir_all(&root).unwrap();
        let db = Db::open(&data).unwrap();
        check(&db, "default", &expected);
        let keyspace = db.keyspace("default").unwrap();
        assert_eq!(keyspace.hash_key(), Some(job.hash_key));
        if is_semi_sorted {
            let group = |prefix: u8| keyspace.scan_prefix([prefix]).unwrap().count();
            for prefix in 0..4 {
                assert_eq!(group(prefix), expected.range(vec![prefix]..vec![prefix + 1]).count());
            }
        }
    }
}

#[test]
fn an_adopted_build_is_a_database_like_any_other() {
    let directory = tempfile::tempdir().unwrap();
    let [root, data] = ["build", "data"].map(|name| directory.path().join(name));
    let (job, items) = (job(5), numbered(20_000));
    build(&root, &job, &items);
    let mut expected: Items = items.into_iter().collect();
    let tables_of_build: usize =
        (0..5).map(|shard| files(&shard_directory(&root, shard), "table-").len()).sum();
    adopt(&root, &data, &AdoptOptions::default()).unwrap();
    assert_eq!(files(&data, "table-").len(), tables_of_build);
    assert!(files(&data, "table-").iter().all(|path| fs::metadata(path).unwrap().nlink() == 2));

    let db = Db::open(&data).unwrap();
    let keyspace = db.keyspace("default").unwrap();
    for number in (0..20_000_u32).step_by(3) {
        keyspace.insert(number.to_le_bytes(), "new").unwrap();
        expected.insert(number.to_le_bytes().to_vec(), b"new".to_vec());
    }
    keyspace.remove(1_u32.to_le_bytes()).unwrap();
    expected.remove(&1_u32.to_le_bytes()[..]);
    db.compact().unwrap();
    check(&db, "default", &expected);
    db.close().unwrap();
    check(&Db::open(&data).unwrap(), "default", &expected);
    // The build is as it was.
    assert_eq!(content(&Db::open_read_only(&root).unwrap(), "default").len(), 20_000);
}

#[test]
fn an_adopted_build_is_repaired_from_its_tables() {
    let directory = tempfile::tempdir().unwrap();
    let [root, data] = ["build", "data"].map(|name| directory.path().join(name));
    let items = numbered(5_000);
    build(&root, &job(4), &items);
    adopt(&root, &data, &AdoptOptions { verify: false, ..AdoptOptions::default() }).unwrap();
    fs::remove_file(data.join("CURRENT")).unwrap();
    files(&data, "manifest-").iter().for_each(|path| fs::remove_file(path).unwrap());
    repair(&data, &RepairOptions::default()).unwrap();
    let db = Db::open(&data).unwrap();
    let names = db.keyspace_names();
    assert_eq!(names.len(), 1, "{names:?}");
    check(&db, &names[0], &items.into_iter().collect());
}

#[test]
fn metadata_plan_and_name_of_the_job_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let job = BuildJob { keyspace: "features".to_owned(), plan: Some(Plan::lsm_trie()), ..job(1) };
    let mut writer =
        ShardWriter::create(shard_directory(root, 0), &job, 0, &ShardOptions::default()).unwrap();
    let metadata = Metadata { flags: 9, expires_at_ms: Some(u64::MAX / 2) };
    writer.insert_with("key", "value", metadata).unwrap();
    writer.insert_with("gone", "value", Metadata { flags: 0, expires_at_ms: Some(1) }).unwrap();
    let written = writer.finish().unwrap();
    assert_eq!((written.items, written.bytes), (2, 17));
    let build = commit_build(root, &CommitOptions::default()).unwrap();
    assert_eq!((build.items, &build.keyspace[..], &build.job[..]), (2, "features", "nightly"));
    let db = Db::open_read_only(root).unwrap();
    assert_eq!(db.keyspace_names(), ["features"]);
    let keyspace = db.keyspace("features").unwrap();
    assert_eq!(keyspace.get_with_metadata("key").unwrap(), Some((b"value".to_vec(), metadata)));
    assert_eq!(keyspace.get("gone").unwrap(), None);
    assert_eq!(keyspace.own_plan(), Some(Plan::lsm_trie()));
    assert!(matches!(keyspace.insert("key", "other"), Err(Error::ReadOnly)));
}

#[test]
fn nothing_counts_before_it_is_finished_and_attempts_can_be_repeated() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let (job, items) = (job(2), numbered(1_000));
    let create = |options: &ShardOptions| ShardWriter::create(shard_directory(root, 0), &job, 0, options);
    let mut first = create(&ShardOptions::default()).unwrap();
    first.insert(&items.iter().find(|(key, _)| job.shard_of(key) == 0).unwrap().0, "x").unwrap();
    let error = create(&ShardOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    // A task that was killed leaves its files and no lock.
    std::mem::forget(fs::File::open(shard_directory(root, 0)).unwrap());
    drop(first);
    write_shard(root, &job, 1, &items).unwrap();
    let error = commit_build(root, &CommitOptions::default()).unwrap_err();
    assert_eq!(part_of(&error), Some(BuildPart::ShardCount), "{error}");
    assert!(Db::open_read_only(root).is_err());
    write_shard(root, &job, 0, &items).unwrap();
    let error = write_shard(root, &job, 0, &items).unwrap_err();
    assert_eq!(part_of(&error), Some(BuildPart::Manifest), "{error}");
    let mut again = create(&ShardOptions { replace: true, ..ShardOptions::default() }).unwrap();
    for (key, value) in items.iter().filter(|(key, _)| job.shard_of(key) == 0) {
        again.insert(key, value).unwrap();
    }
    again.finish().unwrap();
    let committed = commit_build(root, &CommitOptions::default()).unwrap();
    assert_eq!(
        commit_build(root, &CommitOptions { checksums: true, ..Default::default() }).unwrap(),
        committed
    );
    let error = abort_build(root).unwrap_err();
    assert_eq!(part_of(&error), Some(BuildPart::Manifest), "{error}");
    check(&Db::open_read_only(root).unwrap(), "default", &items.into_iter().collect());
}

#[test]
fn an_aborted_build_leaves_nothing_but_what_is_not_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let items = numbered(100);
    write_shard(root, &job(2), 0, &items).unwrap();
    fs::create_dir(root.join("notes")).unwrap();
    fs::create_dir(root.join("killed")).unwrap();
    fs::write(root.join("killed/PARTIAL-SHARD"), "").unwrap();
    assert_eq!(abort_build(root).unwrap(), 2);
    let mut left: Vec<_> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["LOCK", "notes"]);
    fs::write(root.join("notes/mine"), "").unwrap();
    let error = ShardWriter::create(root.join("notes"), &job(2), 0, &ShardOptions::default()).unwrap_err();
    assert!(matches!(&error, Error::NotADatabase { reason } if reason.contains("mine")), "{error}");
}

#[test]
fn keys_and_shards_that_do_not_belong_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let job = job(4);
    let other = (0..100_u32).find(|number| job.shard_of(&number.to_le_bytes()) == 3).unwrap();
    let mut writer =
        ShardWriter::create(shard_directory(root, 2), &job, 2, &ShardOptions::default()).unwrap();
    let error = writer.insert(other.to_le_bytes(), "value").unwrap_err();
    assert_eq!(part_of(&error), Some(BuildPart::Key));
    assert!(error.to_string().contains("expected 2, found 3"), "{error}");
    let long = (0..100_u8).map(|byte| vec![byte; 3000]).find(|key| job.shard_of(key) == 2).unwrap();
    writer.insert(&long, "value").unwrap();
    writer.finish().unwrap();
    for (shard, job) in [(4, job.clone()), (0, BuildJob { shards: 0, ..job.clone() })] {
        let error = ShardWriter::create(root.join("x"), &job, shard, &ShardOptions::default()).unwrap_err();
        assert!(part_of(&error).is_some(), "{error}");
    }
    let chained = BuildJob { plan: Some(Plan::skimpystash()), ..job };
    let error = ShardWriter::create(root.join("x"), &chained, 0, &ShardOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Plan(_)), "{error}");
}

#[test]
fn shards_of_other_jobs_are_refused_with_what_differs() {
    let items = numbered(100);
    let other_key = HashKey::from_bytes([8; 16]);
    let changes: [(BuildPart, BuildJob); 5] = [
        (BuildPart::Job, BuildJob { id: "other".to_owned(), ..job(2) }),
        (BuildPart::HashKey, BuildJob { hash_key: other_key, ..job(2) }),
        (BuildPart::ShardCount, job(3)),
        (BuildPart::Keyspace, BuildJob { keyspace: "other".to_owned(), ..job(2) }),
        (BuildPart::Plan, BuildJob { plan: Some(Plan::lsm_trie()), ..job(2) }),
    ];
    for (part, other) in changes {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        write_shard(root, &job(2), 0, &items).unwrap();
        write_shard(root, &other, 1, &items).unwrap();
        let error = commit_build(root, &CommitOptions::default()).unwrap_err();
        assert_eq!(part_of(&error), Some(part), "{error}");
        assert!(!error.to_string().contains(&format!("{:?}", other_key.to_bytes())));
        assert!(!root.join("BUILD").exists());
        let options = CommitOptions { job: Some(other), ..CommitOptions::default() };
        assert_eq!(part_of(&commit_build(root, &options).unwrap_err()), Some(part));
    }
}

#[test]
fn attempts_in_directories_of_their_own_are_chosen_by_the_job() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let (job, items) = (job(1), numbered(100));
    for (attempt, len) in [("attempt-1", 50), ("attempt-2", 100)] {
        let options = ShardOptions::default();
        let mut writer = ShardWriter::create(root.join(attempt), &job, 0, &options).unwrap();
        items[..len].iter().for_each(|(key, value)| writer.insert(key, value).unwrap());
        writer.finish().unwrap();
    }
    let error = commit_build(root, &CommitOptions::default()).unwrap_err();
    assert_eq!(part_of(&error), Some(BuildPart::Shard), "{error}");
    let chosen =
        |name: &str| CommitOptions { directories: Some(vec![name.to_owned()]), ..CommitOptions::default() };
    assert_eq!(part_of(&build_shards(root).unwrap_err()), Some(BuildPart::Manifest));
    let committed = commit_build(root, &chosen("attempt-2")).unwrap();
    assert_eq!((committed.items, committed.hash_key_fingerprint), (100, job.hash_key.fingerprint()));
    assert_eq!(build_shards(root).unwrap(), [root.join("attempt-2")]);
    let error = commit_build(root, &chosen("attempt-1")).unwrap_err();
    assert_eq!(part_of(&error), Some(BuildPart::Manifest), "{error}");
    check(&Db::open_read_only(root).unwrap(), "default", &items.into_iter().collect());
}

#[test]
fn damaged_and_missing_files_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let [root, data] = ["build", "data"].map(|name| directory.path().join(name));
    build(&root, &job(2), &numbered(2_000));
    let shard = shard_directory(&root, 1);
    let table = files(&shard, "table-").remove(0);
    let flip = |path: &Path, offset: u64| {
        let file = fs::File::options().read(true).write(true).open(path).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset).unwrap();
        file.write_all_at(&[byte[0] ^ 4], offset).unwrap();
    };
    flip(&table, 5_000);
    let full = CommitOptions { checksums: true, ..CommitOptions::default() };
    let error = commit_build(&root, &full).unwrap_err();
    assert_eq!(part_of(&error), Some(BuildPart::Checksum), "{error}");
    assert!(error.to_string().contains(&*table.to_string_lossy()), "{error}");
    let error = adopt(&root, &data, &AdoptOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Corruption(_)), "{error}");
    assert_eq!(fs::read_dir(&data).unwrap().count(), 0);
    flip(&table, 5_000);
    commit_build(&root, &full).unwrap();

    let whole = fs::read(&table).unwrap();
    let refused = |part: BuildPart| {
        let error = adopt(&root, &data, &AdoptOptions::default()).unwrap_err();
        assert_eq!(part_of(&error), Some(part), "{error}");
        assert_eq!(part_of(&Db::open_read_only(&root).unwrap_err()), Some(part));
        assert_eq!(part_of(&commit_build(&root, &CommitOptions::default()).unwrap_err()), Some(part));
    };
    fs::write(&table, &whole[4096..]).unwrap();
    refused(BuildPart::Size);
    fs::remove_file(&table).unwrap();
    refused(BuildPart::Files);
    fs::write(&table, &whole).unwrap();
    // Another shard of the same job is not the one that was committed.
    let saved = directory.path().join("saved");
    fs::rename(&shard, &saved).unwrap();
    let error = Db::open_read_only(&root).unwrap_err();
    assert!(error.to_string().contains("shard-00001"), "{error}");
    write_shard(&root, &job(2), 1, &numbered(1_000)).unwrap();
    let error = Db::open_read_only(&root).unwrap_err();
    assert_eq!(part_of(&error), Some(BuildPart::Checksum), "{error}");
    fs::remove_dir_all(&shard).unwrap();
    fs::rename(&saved, &shard).unwrap();
    adopt(&root, &data, &AdoptOptions::default()).unwrap();
}

#[test]
fn versions_are_listed_with_what_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    build(&root.join("0001"), &job(2), &numbered(10));
    Db::open(root.join("0002")).unwrap().close().unwrap();
    write_shard(&root.join("0003"), &job(2), 0, &numbered(10)).unwrap();
    build(&root.join("0004"), &job(2), &numbered(10));
    fs::write(root.join("0004/BUILD"), "damaged").unwrap();
    let found = versions(root).unwrap();
    let numbers: Vec<(u64, bool)> =
        found.iter().map(|version| (version.number, version.is_complete())).collect();
    assert_eq!(numbers, [(1, true), (2, true), (3, false), (4, false)]);
    assert!(matches!(&found[0].state, VersionState::Build(build) if build.shards == 2 && build.items == 10));
    assert!(matches!(found[1].state, VersionState::Database));
    assert!(matches!(found[3].state, VersionState::Damaged { .. }));
}
