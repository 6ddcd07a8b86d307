//! A crash during a repair, at every point: the remains can be repaired, and nothing more is lost.

use crate::damage::{Contents, Sample, plan};
use alluvium::{RepairOptions, repair_in};
use alluvium_io::{FaultPlan, SimulatedStorage};

fn options() -> RepairOptions {
    RepairOptions { plan: plan(), ..RepairOptions::default() }
}

/// Several kinds of damage at once: a table's page, the log, and with `manifest` also the end of the manifest.
fn damaged(sample: &Sample, manifest: bool) -> Contents {
    let mut contents = sample.contents.clone();
    for (name, bytes) in &mut contents {
        let at = match name.split('-').next() {
            Some("table") => 4096 + 90,
            Some("log") => 4096 + 70,
            Some("manifest") if manifest => bytes.len() - 200,
            _ => continue,
        };
        bytes[at] ^= 0x5a;
    }
    contents
}

#[test]
fn a_repair_that_a_crash_ends_can_be_repeated() {
    let sample = Sample::new();
    for manifest in [false, true] {
        let contents = damaged(&sample, manifest);
        let whole = SimulatedStorage::from_contents(7, &contents);
        let report = repair_in(sample.environment_over(whole.clone()), &options()).unwrap();
        assert!(report.pages_lost > 0 && report.log_gaps > 0, "{report:?}");
        let expected = sample.read_repaired(&whole.contents(), "without a crash");
        let operations = whole.operation_count();
        assert!(operations > 20);
        for crash in 0..operations {
            let what =
                format!("crash before operation {crash} of {operations}, manifest damaged: {manifest}");
            let storage = SimulatedStorage::from_contents(crash, &contents);
            storage.set_faults(FaultPlan { crash_before_operation: Some(crash), ..FaultPlan::default() });
            // The last operations come after the point at which the repair takes effect.
            let _ = repair_in(sample.environment_over(storage.clone()), &options());
            storage.crash();
            let storage = storage.reopen();
            repair_in(sample.environment_over(storage.clone()), &options())
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            let found = sample.read_repaired(&storage.contents(), &what);
            assert_eq!(found, expected, "{what}");
        }
    }
}

#[test]
fn a_repair_whose_disk_fails_or_is_full_can_be_repeated() {
    let sample = Sample::new();
    let contents = damaged(&sample, false);
    let whole = SimulatedStorage::from_contents(7, &contents);
    repair_in(sample.environment_over(whole.clone()), &options()).unwrap();
    let expected = sample.read_repaired(&whole.contents(), "without a failure");
    for number in 0..30 {
        let faults = [
            FaultPlan { fail_write: Some(number), ..FaultPlan::default() },
            FaultPlan { fail_sync: Some(number), ..FaultPlan::default() },
            FaultPlan { quota_bytes: Some(700_000 + number * 10_000), ..FaultPlan::default() },
        ];
        for faults in faults {
            let what = format!("{faults:?}");
            let storage = SimulatedStorage::from_contents(number, &contents);
            storage.set_faults(faults);
            let _ = repair_in(sample.environment_over(storage.clone()), &options());
            storage.set_faults(FaultPlan::default());
            repair_in(sample.environment_over(storage.clone()), &options())
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(sample.read_repaired(&storage.contents(), &what), expected, "{what}");
        }
    }
}
