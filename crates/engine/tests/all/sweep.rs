//! Damage everywhere: each byte of each file of a small database is changed, each file removed and truncated. What is
//! found is right or an error names the damaged file; after a repair everything outside the damage is present.
//!
//! As a test this changes one byte in 499; `cargo xtask sweep` sets another number through `ALLUVIUM_SWEEP`, 1 for all
//! bytes.

use std::collections::BTreeMap;
use std::thread;
use std::time::Instant;

use crate::damage::{Contents, KEYSPACES, Name, Sample, Verdict, plan_in_buckets, plan_of_named_runs};
use alluvium::{ManifestRepair, RepairOptions, RepairReport, repair_in};
use alluvium_io::SimulatedStorage;

/// One byte in this many is changed, at different offsets of each file.
fn stride() -> usize {
    let asked = std::env::var("ALLUVIUM_SWEEP").ok();
    asked.map_or(499, |stride| stride.parse().expect("ALLUVIUM_SWEEP is a number"))
}

fn is_long() -> bool {
    stride() < 100
}

/// The offsets of a file to damage: all, or a sample with many of the few important bytes and few zeros.
fn places(bytes: &[u8], shift: usize) -> Vec<usize> {
    let (len, stride) = (bytes.len(), stride());
    let matters = |at: usize| at < 40 || len - at <= 64;
    let wanted = |&at: &usize| match bytes[at] {
        _ if stride == 1 => true,
        _ if matters(at) => at % 3 == shift % 3,
        0 => at % (stride * 41) == shift % stride,
        _ => at % stride == shift % stride,
    };
    (0..len).filter(wanted).collect()
}

fn repaired(sample: &Sample, contents: &Contents, what: &str) -> (RepairReport, Contents) {
    let storage = SimulatedStorage::from_contents(3, contents);
    let options = RepairOptions { plan: sample.plan.clone(), ..RepairOptions::default() };
    let report = repair_in(sample.environment_over(storage.clone()), &options)
        .unwrap_or_else(|error| panic!("{what}: repair: {error}"));
    (report, storage.contents())
}

/// The content of a repaired database, under the names that its keyspaces had.
fn read(sample: &Sample, contents: &Contents, what: &str) -> BTreeMap<Name, Vec<u8>> {
    let known =
        |name: String| match name.strip_prefix("keyspace-").and_then(|number| number.parse::<usize>().ok()) {
            Some(number) => KEYSPACES[number].to_owned(),
            None => name,
        };
    let found = sample.read_repaired(contents, what);
    found.into_iter().map(|((keyspace, key), value)| ((known(keyspace), key), value)).collect()
}

/// Repairs, and checks that no more is lost than the report says.
fn check_repair(sample: &Sample, contents: &Contents, what: &str) -> RepairReport {
    let (report, after) = repaired(sample, contents, what);
    let differences = sample.differences(&read(sample, &after, what)) as u64;
    let lost = report.items_lost + report.log_gaps;
    let whole_files = report.tables_lost + report.segments_lost;
    assert!(
        differences <= lost || whole_files > 0,
        "{what}: {differences} items differ after a repair that reports {report:?}"
    );
    let (again, _) = repaired(sample, &after, what);
    assert!(!again.changed, "{what}: a second repair finds {again:?}");
    report
}

#[test]
fn every_changed_byte_is_noticed_or_harmless_and_repaired() {
    change_bytes(&Sample::new());
}

#[test]
fn every_changed_byte_of_a_killed_database_is_noticed_or_harmless_and_repaired() {
    change_bytes(&Sample::killed());
}

#[test]
fn every_changed_byte_of_tables_in_buckets_is_noticed_or_harmless_and_repaired() {
    change_bytes(&Sample::of(plan_in_buckets()));
}

#[test]
fn every_changed_byte_of_tables_under_one_filter_is_noticed_or_harmless_and_repaired() {
    change_bytes(&Sample::of(plan_of_named_runs()));
}

/// The lock, and zeros that are reserved for a full disk: their content is never read.
fn means_nothing(name: &str) -> bool {
    name == "LOCK" || name == "RESERVE"
}

fn change_bytes(sample: &Sample) {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (mut noticed, mut changed) = (0, 0);
    for (number, (name, bytes)) in sample.contents.iter().enumerate() {
        if means_nothing(name) {
            continue;
        }
        let started = Instant::now();
        let places = places(bytes, number * 7);
        let change = &|thread| {
            let places = places.iter().skip(thread).step_by(threads);
            places.filter(|&&at| is_change_noticed(sample, name, at)).count()
        };
        let found: usize = thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || change(thread))).collect();
            change(0)
                + others.into_iter().map(|other| other.join().expect("a thread panicked")).sum::<usize>()
        });
        println!("{name}: {found} of {} changes were noticed, {:.0?}", places.len(), started.elapsed());
        (noticed, changed) = (noticed + found, changed + places.len());
    }
    // Zeros after the end of the log are most of the files' bytes, and harmless.
    assert!(noticed * 3 > changed, "{noticed} of {changed} changes were noticed");
}

/// Changes one byte; returns whether that was detected, in which case it is then repaired.
fn is_change_noticed(sample: &Sample, name: &str, at: usize) -> bool {
    // One bit, or several of a byte.
    let mask = [1u8, 0x55, 0x80, 0xff][(at / 3) % 4];
    let what = format!("byte {at} of {name} changed by {mask:#04x}");
    let mut contents = sample.contents.clone();
    contents.get_mut(name).unwrap()[at] ^= mask;
    if sample.check(&contents, &what) == Verdict::Unnoticed {
        return false;
    }
    // A version from the future is not damage: with a sound checksum the two could not be distinguished.
    let report = check_repair(sample, &contents, &what);
    let pages = report.pages_lost + report.log_gaps;
    assert!(pages <= 1 && report.tables_lost <= 1, "{what}: {report:?}");
    assert!(report.changed, "{what}: noticed, but nothing was repaired: {report:?}");
    true
}

#[test]
fn every_missing_file_is_named_and_the_rest_comes_back() {
    let sample = Sample::new();
    for name in sample.contents.keys().filter(|name| !means_nothing(name)) {
        let mut contents = sample.contents.clone();
        contents.remove(name);
        let what = format!("{name} removed");
        if name.starts_with("log-") && sample.check(&contents, &what) == Verdict::Unnoticed {
            // A spare file for future segments.
            continue;
        }
        let error = sample.open(&contents).unwrap_err().to_string();
        let named = error.contains(name) || name.starts_with("log-") && error.contains("segment");
        assert!(named, "{what}: {error}");
        let report = check_repair(&sample, &contents, &what);
        match name.split('-').next() {
            Some("table") => assert_eq!(report.tables_lost, 1),
            Some("log") => assert_eq!(report.segments_lost, 1),
            Some("blob") => assert_eq!(report.blob_files_lost, 1),
            Some("manifest") => assert_eq!(report.manifest, ManifestRepair::Rebuilt),
            _ => assert_eq!(report.manifest, ManifestRepair::Restored),
        }
    }
}

#[test]
fn every_cut_file_is_noticed_or_harmless_and_repaired() {
    let sample = Sample::new();
    for (name, bytes) in sample.contents.iter().filter(|file| file.0 != "LOCK") {
        let step = if is_long() { 101 } else { bytes.len() / 12 + 1 };
        for len in (0..bytes.len()).step_by(step) {
            let mut contents = sample.contents.clone();
            contents.get_mut(name).unwrap().truncate(len);
            let what = format!("{name} cut to {len} bytes");
            if sample.check(&contents, &what) == Verdict::Noticed {
                // What is truncated from a table cannot be counted without its directory.
                let (_, after) = repaired(&sample, &contents, &what);
                read(&sample, &after, &what);
                assert!(!repaired(&sample, &after, &what).0.changed, "{what}");
            }
        }
    }
}

/// A round that found a bug: because the end of a manifest was lost, a blob file was not known to be finished, and its
/// header was damaged, too; the repair kept it although openings cannot read it.
const FOUND: usize = 344;

#[test]
fn nothing_of_random_files_panics() {
    let sample = Sample::new();
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let names: Vec<&String> = sample.contents.keys().filter(|name| *name != "LOCK").collect();
    for round in 0..if is_long() { 3_000 } else { 1 + FOUND } {
        let mut contents = sample.contents.clone();
        for _ in 0..1 + random(6) {
            let bytes = contents.get_mut(names[random(names.len())]).unwrap();
            let start = random(bytes.len());
            let len = 1 + random(5_000);
            bytes.iter_mut().skip(start).take(len).for_each(|byte| *byte = random(256) as u8);
        }
        if !is_long() && round >= 60 && round != FOUND {
            continue;
        }
        let what = format!("round {round}");
        let storage = SimulatedStorage::from_contents(3, &contents);
        let options = RepairOptions { plan: sample.plan.clone(), ..RepairOptions::default() };
        if repair_in(sample.environment_over(storage.clone()), &options).is_ok() {
            read(&sample, &storage.contents(), &what);
        }
    }
}
