//! Bulk builds whose tasks, commits and adoptions fail or crash at each step.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::{
    AdoptOptions, BuildJob, CandidateShard, CommitOptions, Db, Environment, Error, HashKey, ShardOptions,
    ShardWriter, adopt_in, commit_build_in,
};
use alluvium_io::{FaultPlan, SimulatedStorage, Storage};

const SHARDS: u32 = 2;

fn job() -> BuildJob {
    BuildJob::new("nightly", HashKey::from_bytes([7; 16]), SHARDS)
}

fn items() -> BTreeMap<Vec<u8>, Vec<u8>> {
    let item = |number: u32| (number.to_le_bytes().to_vec(), vec![number as u8; 50]);
    (0..600).map(item).chain([(b"large".to_vec(), vec![3; 9000])]).collect()
}

fn write_shard(storage: &SimulatedStorage, shard: u32) -> alluvium::Result<()> {
    let work = Environment { random_seed: 5, ..Environment::over(Arc::new(SimulatedStorage::new(99))) };
    let (job, options) = (job(), ShardOptions::default());
    let mut writer = ShardWriter::create_in(Arc::new(storage.clone()), work, &job, shard, &options)?;
    for (key, value) in items().iter().filter(|(key, _)| job.shard_of(key) == shard) {
        writer.insert(key, value)?;
    }
    writer.finish().map(drop)
}

fn names() -> [String; SHARDS as usize] {
    [0, 1].map(|shard| format!("shard-{shard:05}"))
}

fn commit(root: &SimulatedStorage, shards: &[SimulatedStorage; 2]) -> alluvium::Result<alluvium::Build> {
    let candidate = |(name, storage): (String, &SimulatedStorage)| CandidateShard {
        name,
        storage: Arc::new(storage.clone()),
    };
    let candidates = names().into_iter().zip(shards).map(candidate).collect();
    commit_build_in(root, "root", candidates, &CommitOptions::default())
}

fn adopt(
    root: &SimulatedStorage,
    shards: &[SimulatedStorage; 2],
    target: &SimulatedStorage,
) -> alluvium::Result<alluvium::Adopted> {
    let open = |name: &str| {
        let shard = names().iter().position(|known| known == name).unwrap();
        Ok(Arc::new(shards[shard].clone()) as Arc<dyn Storage>)
    };
    adopt_in(root, open, Arc::new(target.clone()), &AdoptOptions::default())
}

fn built() -> (SimulatedStorage, [SimulatedStorage; 2]) {
    let (root, shards) = (SimulatedStorage::new(1), [2, 3].map(SimulatedStorage::new));
    (0..).zip(&shards).for_each(|(shard, storage)| write_shard(storage, shard).unwrap());
    commit(&root, &shards).unwrap();
    (root, shards)
}

/// Calls `attempt` with a storage that crashes or fails before ever later operations, until it succeeds; `check` looks
/// at what is there after each, and finds out whether that counts.
fn at_each_step(
    fault: fn(u64) -> FaultPlan,
    attempt: impl Fn(&SimulatedStorage) -> bool,
    mut check: impl FnMut(&SimulatedStorage, bool),
) {
    for step in 0..500 {
        let storage = SimulatedStorage::new(step + 10);
        storage.set_faults(fault(step));
        let is_done = attempt(&storage);
        storage.set_faults(FaultPlan::default());
        storage.crash();
        let storage = storage.reopen();
        check(&storage, is_done);
        if is_done && storage.operation_count() < step {
            assert!(step > 10);
            return;
        }
    }
    panic!("it never came to an end");
}

fn crash(step: u64) -> FaultPlan {
    FaultPlan { crash_before_operation: Some(step), ..FaultPlan::default() }
}

fn failed_write(step: u64) -> FaultPlan {
    FaultPlan { fail_write: Some(step), ..FaultPlan::default() }
}

fn failed_sync(step: u64) -> FaultPlan {
    FaultPlan { fail_sync: Some(step), ..FaultPlan::default() }
}

#[test]
fn a_task_that_crashes_or_fails_leaves_a_finished_shard_or_nothing_that_counts() {
    for fault in [crash, failed_write, failed_sync] {
        let other = SimulatedStorage::new(3);
        write_shard(&other, 1).unwrap();
        let mut finished = 0;
        let attempt = |storage: &SimulatedStorage| write_shard(storage, 0).is_ok();
        at_each_step(fault, attempt, |storage, is_done| {
            let counts = storage.contents().contains_key("SHARD");
            assert!(counts || !is_done);
            finished += u32::from(counts);
            let root = SimulatedStorage::new(1);
            let committed = commit(&root, &[storage.clone(), other.clone()]);
            assert_eq!(committed.is_ok(), counts, "{committed:?}");
            if !counts {
                write_shard(storage, 0).unwrap();
                commit(&root, &[storage.clone(), other.clone()]).unwrap();
            }
        });
        assert!(finished > 0);
    }
}

#[test]
fn a_commit_that_crashes_or_fails_happened_or_not_and_is_repeated() {
    let (_, shards) = built();
    for fault in [crash, failed_write, failed_sync] {
        for step in 0..40 {
            let root = SimulatedStorage::new(step + 10);
            root.set_faults(fault(step));
            let is_done = commit(&root, &shards).is_ok();
            root.set_faults(FaultPlan::default());
            root.crash();
            let root = root.reopen();
            let target = SimulatedStorage::new(5);
            assert!(adopt(&root, &shards, &target).is_ok() || !is_done);
            let again = commit(&root, &shards).unwrap();
            assert_eq!(again, commit(&root, &shards).unwrap());
        }
    }
}

#[test]
fn an_adoption_that_crashes_or_fails_leaves_the_database_or_nothing() {
    let (root, shards) = built();
    for fault in [crash, failed_write, failed_sync] {
        let attempt = |target: &SimulatedStorage| adopt(&root, &shards, target).is_ok();
        at_each_step(fault, attempt, |target, is_done| {
            match adopt(&root, &shards, target) {
                Ok(_) => assert!(!is_done),
                // It was complete, except for a note perhaps.
                Err(Error::NotADatabase { .. }) if target.contents().contains_key("CURRENT") => {}
                Err(error) => panic!("{error}"),
            }
            let environment = Environment::over(Arc::new(target.clone()));
            let builder = Db::builder("simulated").background(false).create(false).environment(environment);
            let db = builder.open().unwrap();
            let found = db.keyspace("default").unwrap().iter().map(|item| item.unwrap());
            assert!(found.collect::<BTreeMap<_, _>>() == items());
            assert!(!target.contents().contains_key("PARTIAL-COPY"));
            assert!(db.verify().unwrap().problems.is_empty());
        });
    }
}
