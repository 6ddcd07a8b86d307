//! What may and may not happen to the files of a machine that crashes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;

use proptest::prelude::*;

use super::*;

const SEEDS: u64 = 300;

fn write(storage: &SimulatedStorage, name: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = storage.open(name, OpenMode::Create).unwrap();
    file.write_at(bytes, 0).unwrap();
    file
}

/// The outcomes of a crash after `prepare`, over many seeds.
fn outcomes(prepare: impl Fn(&SimulatedStorage)) -> BTreeSet<BTreeMap<String, Vec<u8>>> {
    (0..SEEDS)
        .map(|seed| {
            let storage = SimulatedStorage::new(seed);
            prepare(&storage);
            storage.crash();
            storage.reopen().contents()
        })
        .collect()
}

#[derive(Clone, Debug)]
enum Step {
    Write { file: usize, offset: usize, len: usize },
    SetLen { file: usize, len: usize },
    Punch { file: usize, offset: usize, len: usize },
    Sync { file: usize },
}

impl Step {
    fn file(&self) -> usize {
        match *self {
            Self::Write { file, .. } | Self::SetLen { file, .. } => file,
            Self::Punch { file, .. } | Self::Sync { file } => file,
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || prop_oneof![0usize..3000, (0usize..12).prop_map(|sector| sector * 512)];
    let step = prop_oneof![
        5 => (0usize..3, place(), place()).prop_map(|(file, offset, len)| Step::Write { file, offset, len }),
        1 => (0usize..3, place()).prop_map(|(file, len)| Step::SetLen { file, len }),
        1 => (0usize..3, place(), place()).prop_map(|(file, offset, len)| Step::Punch { file, offset, len }),
        2 => (0usize..3).prop_map(|file| Step::Sync { file }),
    ];
    prop::collection::vec(step, 0..20)
}

/// A model of one file that knows, for each byte and for the length, every value that a crash may leave.
#[derive(Default)]
struct Possible {
    live: Vec<u8>,
    bytes: Vec<BTreeSet<u8>>,
    lens: BTreeSet<usize>,
}

impl Possible {
    fn note(&mut self) {
        self.bytes.resize_with(self.bytes.len().max(self.live.len()), || BTreeSet::from([0]));
        self.lens.insert(self.live.len());
        for (possible, &byte) in self.bytes.iter_mut().zip(&self.live) {
            possible.insert(byte);
        }
    }

    fn sync(&mut self) {
        self.bytes = self.live.iter().map(|&byte| BTreeSet::from([byte])).collect();
        self.lens = BTreeSet::from([self.live.len()]);
    }
}

proptest! {
    #[test]
    fn a_crash_leaves_nothing_but_synced_bytes_and_parts_of_unsynced_changes(seed: u64, steps in steps()) {
        let storage = SimulatedStorage::new(seed);
        let files: Vec<_> = (0..3).map(|file| write(&storage, &file.to_string(), b"")).collect();
        storage.sync_directory().unwrap();
        let mut models: Vec<Possible> = (0..3).map(|_| Possible::default()).collect();
        models.iter_mut().for_each(Possible::sync);
        for (turn, step) in steps.iter().enumerate() {
            let file = step.file();
            let model = &mut models[file];
            match *step {
                Step::Write { offset, len, .. } => {
                    files[file].write_at(&vec![turn as u8 + 1; len], offset as u64).unwrap();
                    if len > 0 {
                        model.live.resize(model.live.len().max(offset + len), 0);
                        model.live[offset..offset + len].fill(turn as u8 + 1);
                        // A kept write ends here even if an unsynced cut or extension before it is lost.
                        model.lens.insert(offset + len);
                    }
                    model.note();
                }
                Step::SetLen { len, .. } => {
                    files[file].set_len(len as u64).unwrap();
                    model.live.resize(len, 0);
                    model.bytes.iter_mut().skip(len).for_each(|possible| { possible.insert(0); });
                    model.note();
                }
                Step::Punch { offset, len, .. } => {
                    files[file].punch_hole(offset as u64, len as u64).unwrap();
                    let end = (offset + len).min(model.live.len());
                    model.live[offset.min(end)..end].fill(0);
                    // Where an unsynced cut is lost, the hole may reach further than it does now.
                    model.bytes.iter_mut().skip(offset).take(len).for_each(|possible| { possible.insert(0); });
                    model.note();
                }
                Step::Sync { .. } => {
                    files[file].sync().unwrap();
                    model.sync();
                }
            }
            let mut content = vec![0; model.live.len() + 1];
            prop_assert_eq!(files[file].read_at(&mut content, 0).unwrap(), model.live.len());
            prop_assert_eq!(&content[..model.live.len()], &*model.live);
        }
        storage.crash();
        let after = storage.reopen().contents();
        for (file, model) in models.iter().enumerate() {
            let content = &after[&file.to_string()];
            let range = *model.lens.first().unwrap()..=*model.lens.last().unwrap();
            prop_assert!(range.contains(&content.len()), "{} bytes, not in {:?}", content.len(), range);
            for (offset, byte) in content.iter().enumerate() {
                prop_assert!(model.bytes[offset].contains(byte), "byte {} of file {}", offset, file);
            }
        }
    }

    #[test]
    fn the_same_seed_and_operations_have_the_same_outcome(seed: u64, steps in steps(), crash_at in 0u64..30) {
        let run = || {
            let storage = SimulatedStorage::new(seed);
            storage.set_faults(FaultPlan { crash_before_operation: Some(crash_at), ..FaultPlan::default() });
            let mut outcomes = Vec::new();
            let files: Vec<_> = (0..3).map(|file| storage.open(&file.to_string(), OpenMode::Create)).collect();
            for (turn, step) in steps.iter().enumerate() {
                let file = step.file();
                let Ok(file) = &files[file] else { continue };
                let outcome = match *step {
                    Step::Write { offset, len, .. } => file.write_at(&vec![turn as u8; len], offset as u64),
                    Step::SetLen { len, .. } => file.set_len(len as u64),
                    Step::Punch { offset, len, .. } => file.punch_hole(offset as u64, len as u64),
                    Step::Sync { .. } => file.sync(),
                };
                outcomes.push(outcome.map_err(|error| error.to_string()));
            }
            storage.crash();
            (outcomes, storage.reopen().contents(), storage.operation_count())
        };
        prop_assert_eq!(run(), run());
    }
}

#[test]
fn unsynced_writes_are_lost_kept_torn_and_reordered() {
    let seen = outcomes(|storage| {
        let file = write(storage, "f", &[0; 2048]);
        file.sync().unwrap();
        storage.sync_directory().unwrap();
        file.write_at(&[1; 1024], 0).unwrap();
        file.write_at(&[2; 1024], 1024).unwrap();
    });
    let sectors: BTreeSet<[u8; 4]> = seen
        .iter()
        .map(|contents| {
            let content = &contents["f"];
            assert_eq!(content.len(), 2048);
            for sector in content.chunks(512) {
                assert!(sector.iter().all(|byte| *byte == sector[0]), "a torn sector");
            }
            std::array::from_fn(|sector| content[sector * 512])
        })
        .collect();
    assert!(sectors.contains(&[0, 0, 0, 0]), "lost");
    assert!(sectors.contains(&[1, 1, 2, 2]), "kept");
    assert!(sectors.contains(&[0, 0, 2, 2]), "reordered");
    assert!(sectors.contains(&[0, 1, 0, 0]) && sectors.contains(&[1, 0, 2, 2]), "torn");
}

#[test]
fn a_length_may_arrive_without_its_bytes() {
    let seen = outcomes(|storage| {
        let file = write(storage, "f", b"");
        storage.sync_directory().unwrap();
        file.write_at(&[1; 512], 0).unwrap();
    });
    let contents: BTreeSet<_> = seen.into_iter().map(|mut contents| contents.remove("f").unwrap()).collect();
    assert_eq!(contents, BTreeSet::from([vec![], vec![0; 512], vec![1; 512]]));
}

#[test]
fn names_and_contents_are_separate() {
    let seen = outcomes(|storage| {
        write(storage, "f", &[1; 100]);
    });
    let contents: BTreeSet<_> = seen.iter().map(|contents| contents.get("f").cloned()).collect();
    assert_eq!(contents, BTreeSet::from([None, Some(vec![]), Some(vec![0; 100]), Some(vec![1; 100])]));
}

#[test]
fn a_rename_is_atomic_and_durable_only_after_a_directory_sync() {
    let prepare = |storage: &SimulatedStorage| {
        write(storage, "target", b"old").sync().unwrap();
        storage.sync_directory().unwrap();
        write(storage, "new", b"new").sync().unwrap();
        storage.rename("new", "target").unwrap();
    };
    let entry = |name: &str, bytes: &[u8]| (name.to_owned(), bytes.to_vec());
    assert_eq!(
        outcomes(prepare),
        BTreeSet::from([
            BTreeMap::from([entry("target", b"old")]),
            BTreeMap::from([entry("target", b"old"), entry("new", b"new")]),
            BTreeMap::from([entry("target", b"new")]),
        ])
    );
    let synced = outcomes(|storage| {
        prepare(storage);
        storage.sync_directory().unwrap();
    });
    assert_eq!(synced, BTreeSet::from([BTreeMap::from([entry("target", b"new")])]));
}

#[test]
fn changes_of_different_names_survive_in_any_combination() {
    let seen = outcomes(|storage| {
        write(storage, "a", b"");
        storage.sync_directory().unwrap();
        write(storage, "b", b"");
        storage.remove("a").unwrap();
    });
    let names: BTreeSet<Vec<String>> =
        seen.into_iter().map(|contents| contents.into_keys().collect()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
}

#[test]
fn a_crash_at_any_operation_stops_everything_until_reopening() {
    for crash_at in 0..5 {
        let storage = SimulatedStorage::new(7);
        storage.set_faults(FaultPlan { crash_before_operation: Some(crash_at), ..FaultPlan::default() });
        let run = || -> Result<()> {
            let file = storage.open("f", OpenMode::Create)?;
            file.write_at(b"x", 0)?;
            file.sync()?;
            storage.sync_directory()?;
            storage.rename("f", "g")?;
            Ok(())
        };
        let error = run().unwrap_err();
        assert_eq!(SimulatedFault::of(&error), Some(SimulatedFault::Crash), "{error}");
        assert!(storage.is_crashed());
        assert_eq!(storage.operation_count(), crash_at);
        assert!(storage.list().is_err());
        let again = storage.reopen();
        assert!(!again.is_crashed() && storage.is_crashed());
        assert_eq!(again.contents().contains_key("f"), crash_at == 4 || !again.contents().is_empty());
        again.open("h", OpenMode::Create).unwrap();
        assert!(storage.open("h", OpenMode::Read).is_err());
    }
}

#[test]
fn handles_and_locks_die_with_their_generation() {
    let storage = SimulatedStorage::new(1);
    let file = write(&storage, "f", b"abc");
    let guard = storage.lock("LOCK").unwrap();
    let error = storage.lock("LOCK").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    storage.kill();
    let again = storage.reopen();
    assert_eq!(again.contents()["f"], b"abc", "the machine went on");
    let again_guard = again.lock("LOCK").unwrap();
    drop(guard);
    assert!(again.lock("LOCK").is_err(), "a dead guard must not release a living lock");
    drop(again_guard);
    again.lock("LOCK").unwrap();
    let error = file.read_at(&mut [0], 0).unwrap_err();
    assert_eq!(SimulatedFault::of(&error), Some(SimulatedFault::Crash));
    assert!(file.sync().is_err() && file.len().is_err());
}

#[test]
fn a_failed_sync_forgets_what_it_lost() {
    let mut lost = 0;
    for seed in 0..SEEDS {
        let storage = SimulatedStorage::new(seed);
        let file = write(&storage, "f", &[0; 512]);
        file.sync().unwrap();
        storage.sync_directory().unwrap();
        storage.set_faults(FaultPlan { fail_sync: Some(0), ..FaultPlan::default() });
        file.write_at(&[1; 512], 0).unwrap();
        let error = file.sync().unwrap_err();
        assert_eq!(SimulatedFault::of(&error), Some(SimulatedFault::Device));
        file.sync().unwrap();
        let mut cached = [0; 512];
        file.read_at(&mut cached, 0).unwrap();
        assert_eq!(cached, [1; 512], "the page cache still shows it");
        storage.crash();
        lost += u64::from(storage.reopen().contents()["f"] == [0; 512]);
    }
    assert!(lost > SEEDS / 10 && lost < SEEDS, "{lost} of {SEEDS} lost");
}

#[test]
fn reads_and_writes_fail_when_told() {
    let storage = SimulatedStorage::new(3);
    let file = write(&storage, "f", &[7; 1000]);
    let faults = FaultPlan { fail_read: Some(1), fail_write: Some(1), ..FaultPlan::default() };
    storage.set_faults(faults);
    let mut buffer = [0; 10];
    assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 10);
    let error = file.read_at(&mut buffer, 20).unwrap_err();
    assert_eq!(error.to_string(), "cannot read f at offset 20: simulated device error");
    assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 10);
    file.write_at(&[8], 0).unwrap();
    assert!(file.write_at(&[9; 100], 0).is_err());
    file.write_at(&[8], 0).unwrap();
    assert_eq!(storage.read_count(), 3);
}

#[test]
fn a_full_device_refuses_and_a_hole_makes_room() {
    let storage = SimulatedStorage::new(5);
    storage.set_faults(FaultPlan { quota_bytes: Some(8192), ..FaultPlan::default() });
    let file = write(&storage, "f", &[1; 8192]);
    assert_eq!(file.write_at(&[1; 1], 8192).unwrap_err().kind(), ErrorKind::StorageFull);
    file.write_at(&[2; 8192], 0).unwrap();
    file.punch_hole(0, 4096).unwrap();
    assert_eq!(file.allocated_bytes().unwrap(), 4096);
    file.check_available(7, 4096).unwrap();
    assert_eq!(file.check_available(7, 4097).unwrap_err().kind(), ErrorKind::StorageFull);
    file.write_at(&[1; 1], 8192).unwrap();
}

#[test]
fn removed_files_live_as_long_as_their_handles() {
    let storage = SimulatedStorage::new(1);
    let file = write(&storage, "f", b"abc");
    storage.sync_directory().unwrap();
    storage.remove("f").unwrap();
    storage.sync_directory().unwrap();
    let mut buffer = [0; 3];
    assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 3);
    assert_eq!(lock(&storage.disk).inodes.len(), 1);
    drop(file);
    assert!(lock(&storage.disk).inodes.is_empty());
}

#[test]
fn flipped_bits_are_seen_and_stay() {
    let storage = SimulatedStorage::from_contents(1, &BTreeMap::from([("f".to_owned(), vec![0; 10])]));
    storage.flip_bit("f", 9, 3).unwrap();
    assert_eq!(storage.contents()["f"][9], 8);
    assert_eq!(storage.flip_bit("f", 10, 0).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(storage.flip_bit("g", 0, 0).unwrap_err().kind(), ErrorKind::NotFound);
    storage.crash();
    assert_eq!(storage.reopen().contents()["f"][9], 8);
}

/// Every planted bug changes what a crash can leave; without it, the same operations have one outcome only.
#[test]
fn planted_bugs_lose_what_was_synced() {
    let run = |bug: Option<PlantedBug>| {
        outcomes(|storage| {
            bug.iter().cloned().for_each(|bug| storage.plant(bug));
            for name in ["log-1", "manifest-1"] {
                write(storage, name, &[1; 512]).sync().unwrap();
            }
            storage.sync_directory().unwrap();
        })
    };
    let sound = run(None);
    assert_eq!(sound.len(), 1);
    let whole =
        |contents: &BTreeMap<String, Vec<u8>>, name: &str| contents.get(name).is_some_and(|c| c == &[1; 512]);
    let log = run(Some(PlantedBug::SkipFileSync { name_prefix: "log-".to_owned() }));
    assert!(log.iter().any(|contents| !whole(contents, "log-1")));
    assert!(log.iter().all(|contents| whole(contents, "manifest-1")));
    let directory = run(Some(PlantedBug::SkipDirectorySync));
    assert!(directory.iter().any(|contents| !contents.contains_key("manifest-1")));
}

#[test]
fn a_synced_inode_holds_nothing_back() {
    let storage = SimulatedStorage::new(1);
    let file = write(&storage, "f", &[1; 5000]);
    assert!(lock(&storage.disk).inodes.values().all(Inode::has_unsynced));
    file.sync().unwrap();
    assert!(!lock(&storage.disk).inodes.values().any(Inode::has_unsynced));
}
