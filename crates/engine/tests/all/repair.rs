//! Repair: everything outside the damage is kept, nothing is invented, and damaged files are kept under other names.

use crate::damage::{Contents, Sample, Verdict, plan};
use alluvium::{Error, ManifestRepair, RepairOptions, RepairReport, repair_in};
use alluvium_io::SimulatedStorage;

fn options() -> RepairOptions {
    RepairOptions { plan: plan(), ..RepairOptions::default() }
}

fn repaired(sample: &Sample, contents: &Contents) -> (RepairReport, Contents) {
    let storage = SimulatedStorage::from_contents(3, contents);
    let report = repair_in(sample.environment_over(storage.clone()), &options()).unwrap();
    (report, storage.contents())
}

fn names(contents: &Contents, prefix: &str) -> Vec<String> {
    contents.keys().filter(|name| name.starts_with(prefix)).cloned().collect()
}

#[test]
fn a_sound_database_is_left_alone() {
    let sample = Sample::new();
    assert_eq!(sample.check(&sample.contents, "untouched"), Verdict::Unnoticed);
    let (report, after) = repaired(&sample, &sample.contents);
    assert!(!report.changed && report.problems.is_empty(), "{report:?}");
    assert!(report.tables >= 3 && report.segments >= 1, "{report:?}");
    assert_eq!(
        after.iter().filter(|file| file.0 != "LOCK").collect::<Vec<_>>(),
        sample.contents.iter().filter(|file| file.0 != "LOCK").collect::<Vec<_>>()
    );
}

#[test]
fn a_damaged_page_costs_its_items_and_no_others() {
    let sample = Sample::new();
    for table in names(&sample.contents, "table-") {
        let mut contents = sample.contents.clone();
        contents.get_mut(&table).unwrap()[4096 + 100] ^= 0x55;
        assert_eq!(sample.check(&contents, &table), Verdict::Noticed);
        let (report, after) = repaired(&sample, &contents);
        assert_eq!((report.pages_lost, report.tables_rewritten), (1, 1), "{report:?}");
        assert!(report.may_show_old_values());
        assert_eq!(report.set_aside.len(), 1);
        assert_eq!(after[&report.set_aside[0]], contents[&table]);
        let found = sample.read_repaired(&after, &table);
        let differences = sample.differences(&found) as u64;
        assert!(differences <= report.items_lost, "{differences} of {report:?}");
        let (again, _) = repaired(&sample, &after);
        assert!(!again.changed, "{again:?}");
    }
}

#[test]
fn a_lost_directory_or_index_costs_nothing() {
    let sample = Sample::new();
    for table in names(&sample.contents, "table-") {
        let len = sample.contents[&table].len();
        for from_end in [1, 30, 60, 4096 - 10, 4096 - 60] {
            let mut contents = sample.contents.clone();
            contents.get_mut(&table).unwrap()[len - from_end] ^= 0x81;
            if sample.check(&contents, &table) == Verdict::Unnoticed {
                continue;
            }
            let (report, after) = repaired(&sample, &contents);
            let found = sample.read_repaired(&after, &table);
            assert_eq!(sample.differences(&found), 0, "{table} {from_end} bytes before its end: {report:?}");
        }
    }
}

#[test]
fn a_missing_current_or_manifest_is_put_together_from_the_tables() {
    let sample = Sample::new();
    let mut contents = sample.contents.clone();
    contents.remove("CURRENT");
    let (report, after) = repaired(&sample, &contents);
    assert_eq!(report.manifest, ManifestRepair::Restored);
    assert_eq!(sample.differences(&sample.read_repaired(&after, "CURRENT")), 0);

    for manifest in names(&sample.contents, "manifest-") {
        contents.remove(&manifest);
    }
    let (report, after) = repaired(&sample, &contents);
    assert_eq!(report.manifest, ManifestRepair::Rebuilt);
    assert!(report.may_show_old_values());
    let found = sample.read_repaired(&after, "manifest");
    let renamed: std::collections::BTreeMap<_, _> = found
        .into_iter()
        .map(|((keyspace, key), value)| {
            let number: usize = keyspace.strip_prefix("keyspace-").unwrap().parse().unwrap();
            ((crate::damage::KEYSPACES[number].to_owned(), key), value)
        })
        .collect();
    assert_eq!(sample.differences(&renamed), 0, "{report:?}");
    let (again, _) = repaired(&sample, &after);
    assert!(!again.changed, "{again:?}");
}

#[test]
fn damage_in_the_log_costs_the_records_that_it_touches() {
    let sample = Sample::new();
    let log = names(&sample.contents, "log-").into_iter().find(|log| {
        let bytes = &sample.contents[log];
        bytes.len() > 4200 && bytes[4096..4200].iter().any(|&byte| byte != 0)
    });
    let log = log.expect("a log with records");
    let mut contents = sample.contents.clone();
    contents.get_mut(&log).unwrap()[4096 + 50] ^= 0x55;
    assert_eq!(sample.check(&contents, &log), Verdict::Noticed);
    let (report, after) = repaired(&sample, &contents);
    assert_eq!(report.log_gaps, 1, "{report:?}");
    assert!(report.records_kept > 10, "{report:?}");
    let found = sample.read_repaired(&after, &log);
    assert_eq!(sample.differences(&found), 1, "{report:?}");
    assert!(names(&after, "log-").is_empty());
}

#[test]
fn a_dry_run_changes_nothing_and_tells_the_same() {
    let sample = Sample::new();
    let table = names(&sample.contents, "table-").remove(0);
    let mut contents = sample.contents.clone();
    contents.get_mut(&table).unwrap()[5000] ^= 0x55;
    let storage = SimulatedStorage::from_contents(3, &contents);
    let options = RepairOptions { dry_run: true, ..options() };
    let told = repair_in(sample.environment_over(storage.clone()), &options).unwrap();
    assert_eq!(storage.contents()[&table], contents[&table]);
    assert!(names(&storage.contents(), "lost-").is_empty());
    let (done, _) = repaired(&sample, &contents);
    let expected = RepairReport { dry_run: true, set_aside: Vec::new(), ..done };
    assert_eq!(told, expected);
}

#[test]
fn discarded_files_are_gone() {
    let sample = Sample::new();
    let table = names(&sample.contents, "table-").remove(0);
    let mut contents = sample.contents.clone();
    contents.get_mut(&table).unwrap()[5000] ^= 0x55;
    let storage = SimulatedStorage::from_contents(3, &contents);
    let options = RepairOptions { discard: true, ..options() };
    let report = repair_in(sample.environment_over(storage.clone()), &options).unwrap();
    assert!(report.set_aside.is_empty() && !storage.contents().contains_key(&table));
    assert!(names(&storage.contents(), "lost-").is_empty());
}

#[test]
fn what_is_no_database_or_newer_or_open_is_refused() {
    let sample = Sample::new();
    let nothing = Contents::from([("holiday.jpg".to_owned(), b"sun".to_vec())]);
    let refused = repair_in(sample.environment(&nothing), &options()).unwrap_err();
    assert!(matches!(refused, Error::NotADatabase { .. }), "{refused}");
    let storage = SimulatedStorage::from_contents(3, &sample.contents);
    let db = sample.open_in(sample.environment_over(storage.clone())).unwrap();
    let refused = repair_in(sample.environment_over(storage), &options()).unwrap_err();
    assert!(matches!(refused, Error::Locked { .. }), "{refused}");
    drop(db);
}

/// What is truncated along with the directory can only be counted by the manifest.
#[test]
fn items_of_cut_and_missing_tables_are_counted() {
    let sample = Sample::new();
    for name in names(&sample.contents, "table-") {
        let len = sample.contents[&name].len();
        for cut in [Some(4096), Some(len / 2), Some(len - 100), None] {
            let mut contents = sample.contents.clone();
            match cut {
                Some(cut) => contents.get_mut(&name).unwrap().truncate(cut),
                None => drop(contents.remove(&name)),
            }
            let (report, after) = repaired(&sample, &contents);
            let differences = sample.differences(&sample.read_repaired(&after, &name)) as u64;
            let is_counted = report.items_lost >= differences || report.items_lost_is_minimum;
            assert!(is_counted, "{name} cut to {cut:?}: {differences} of {report:?}");
            assert!(!report.items_lost_is_minimum || report.items_lost > 0, "{report:?}");
            assert_eq!(repaired(&sample, &after).0.items_lost, 0, "{name} cut to {cut:?}: again");
        }
    }
}

/// The newest blob file of a killed process has no known end; its header is repaired nevertheless.
#[test]
fn a_damaged_header_of_a_blob_file_is_mended() {
    let sample = Sample::killed();
    let name = names(&sample.contents, "blob-").pop().unwrap();
    for at in [0, 9, 12, 17, 30, 39] {
        let mut contents = sample.contents.clone();
        contents.get_mut(&name).unwrap()[at] ^= 0x40;
        assert!(sample.open(&contents).is_err(), "byte {at}");
        let (report, after) = repaired(&sample, &contents);
        assert_eq!((report.items_lost, report.large_items_lost), (0, 0), "byte {at}: {report:?}");
        // Reads everything, and verifies.
        assert_eq!(sample.differences(&sample.read_repaired(&after, &name)), 0, "byte {at}");
        assert!(!repaired(&sample, &after).0.changed, "byte {at}");
    }
}
