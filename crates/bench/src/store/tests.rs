//! The whole benchmark, at small scale. Checks nothing about times.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    options: StoreOptions,
}

fn options(directory: &std::path::Path, arguments: &[&str]) -> StoreOptions {
    let directory = directory.to_str().expect("temporary directories have plain names");
    let mut line = vec!["store", "--items", "3000", "--dir", directory, "--raw-seconds", "0"];
    line.extend(arguments);
    Command::parse_from(line).options
}

#[test]
fn every_phase_runs_and_verifies() {
    let directory = tempfile::tempdir().unwrap();
    let phases = "load,settle,get,all,miss,update,flush,mixed,sustain,compact,reopen,all,scan";
    let options = options(
        directory.path(),
        &["--phases", phases, "--batch", "7", "--threads", "3", "--writers", "2", "--sustain-seconds", "0.1"],
    );
    let mut report = Report::new(false);
    run(&options, &mut report).unwrap();
    let cases: Vec<&str> =
        report.measurements().iter().map(|measurement| measurement.case.as_str()).collect();
    assert_eq!(cases.join(","), phases);
    assert!(!directory.path().join(SUBDIRECTORY).exists());
}

#[test]
fn items_that_leave_are_gone_and_the_others_stay() {
    for leaves in ["expire", "delete"] {
        let directory = tempfile::tempdir().unwrap();
        let phases = format!("load,get,scan,{leaves},get,all,scan,miss,snapshot,reopen,all,scan");
        let options = options(
            directory.path(),
            &["--phases", &phases, "--batch", "3", "--threads", "2", "--writers", "2"],
        );
        let mut report = Report::new(false);
        run(&options, &mut report).unwrap();
        let measured = report.measurements();
        assert!(measured[1].metrics["ops_per_s_to_first"].is_null());
        assert!(measured[4].metrics["ops_per_s_to_first"].as_f64().is_some_and(|ratio| ratio > 0.0));
        assert_eq!(measured[3].metrics["items_left"], 1500);
        assert_eq!(measured[8].metrics["snapshot_disk_bytes_after"], 0);
    }
}

#[test]
fn lookups_are_right_in_every_step_of_degradation() {
    let directory = tempfile::tempdir().unwrap();
    let options =
        options(directory.path(), &["--phases", "load,flush,degrade", "--threads", "2", "--row-cache", "0"]);
    let mut report = Report::new(false);
    run(&options, &mut report).unwrap();
    let measured = &report.measurements()[2..];
    assert_eq!(measured.len(), 7);
    let index_reads: Vec<f64> =
        measured.iter().map(|step| step.metrics["index_reads_per_get"].as_f64().unwrap()).collect();
    assert_eq!(index_reads[0], 0.0);
    assert!(index_reads[5] > 0.9, "without indexes in memory a get reads one: {index_reads:?}");
    assert!(index_reads[6] < 0.1, "indexes come back: {index_reads:?}");
}

#[test]
fn plans_change_while_the_store_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let phases = "load,get,replan=tiered,all,replan=lsm-trie,reopen,update,replan=silt,all,scan";
    let options = options(
        directory.path(),
        &["--phases", phases, "--threads", "2", "--writers", "2", "--get-ratio", "0.5"],
    );
    let mut report = Report::new(false);
    run(&options, &mut report).unwrap();
    let measured = report.measurements();
    assert_eq!(measured[2].case, "replan");
    assert_eq!(measured[2].config["plan"], "tiered");
    assert!(measured[4].metrics["ops_per_s"].as_f64().is_some_and(|rate| rate > 0.0));
}

#[test]
fn a_kept_database_serves_later_runs() {
    let directory = tempfile::tempdir().unwrap();
    let mut report = Report::new(false);
    run(&options(directory.path(), &["--phases", "load", "--keep"]), &mut report).unwrap();
    run(&options(directory.path(), &["--phases", "all,scan"]), &mut report).unwrap();
    assert_eq!(report.measurements().len(), 3);
}

#[test]
fn predictions_name_what_is_measured() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path(), &["--phases", "load,get,miss,update,get,mixed,get,compact,get"]);
    let mut report = Report::new(false);
    run(&options, &mut report).unwrap();
    let mut predicted = Vec::new();
    for measurement in report.measurements() {
        for (name, value) in &measurement.predicted {
            assert!(measurement.metrics.contains_key(name), "{name}");
            assert!(value.as_f64().is_some_and(|value| value > 0.0), "{name}");
        }
        predicted.push(!measurement.predicted.is_empty());
    }
    // The model predicts nothing after everything was merged on request.
    assert_eq!(predicted, [true, true, true, true, true, false, true, false, false]);
}

#[test]
fn chained_stores_run_and_their_predictions_name_what_is_measured() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(
        directory.path(),
        &[
            "--plan",
            "skimpystash",
            "--value-size",
            "48",
            "--phases",
            "load,get,miss,update,get,compact,get,all",
        ],
    );
    let mut report = Report::new(false);
    run(&options, &mut report).unwrap();
    for measurement in report.measurements() {
        for (name, value) in &measurement.predicted {
            assert!(measurement.metrics.contains_key(name), "{name}");
            assert!(value.as_f64().is_some_and(f64::is_finite), "{name}");
        }
    }
    let predicted = |at: usize| !report.measurements()[at].predicted.is_empty();
    assert!((0..5).all(predicted) && !predicted(6));
}

#[test]
fn a_wrong_answer_ends_the_benchmark() {
    let directory = tempfile::tempdir().unwrap();
    let mut report = Report::new(false);
    run(&options(directory.path(), &["--phases", "load", "--keep"]), &mut report).unwrap();
    let other_values = options(directory.path(), &["--phases", "get", "--value-size", "50"]);
    assert!(matches!(run(&other_values, &mut report), Err(BenchError::WrongAnswer(_))));
}

#[test]
fn senseless_options_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [
        &["--key-size", "7"][..],
        &["--threads", "0"],
        &["--get-ratio", "1.5"],
        &["--durability", "maybe"],
        &["--plan", "castle"],
        &["--phases", "get"],
    ] {
        let outcome = run(&options(directory.path(), arguments), &mut Report::new(false));
        assert!(matches!(outcome, Err(BenchError::Usage(_))), "{arguments:?}");
    }
}
