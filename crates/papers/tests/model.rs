//! `alluvium-papers model` as users run it: the papers' results, and refused parameters.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs `alluvium-papers LINE` in `directory`.
fn papers(directory: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_alluvium-papers"));
    command.current_dir(directory).args(line.split_whitespace()).output().unwrap()
}

/// The one JSON object that `model LINE --json` prints.
fn model(line: &str) -> Value {
    let output = papers(Path::new("."), &format!("model {line} --json"));
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn metric(line: &str, name: &str) -> f64 {
    let object = model(line);
    object["metrics"][name].as_f64().unwrap_or_else(|| panic!("{line}: no {name} in {object}"))
}

fn assert_metric(line: &str, name: &str, expected: f64, tolerance: f64) {
    let actual = metric(line, name);
    assert!((actual / expected - 1.0).abs() <= tolerance, "{line}: {name} {actual} instead of {expected}");
}

#[test]
fn primitives_print_the_figures_of_the_thesis() {
    assert_metric("merge --keys 100000000 --skew 0.99 --sizes 1e7,9e7", "unique_keys", 9.03e7, 5e-4);
    assert_metric("dinterval --keys 1e8 --size 10485760", "dinterval", 2.26e7, 2e-3);
    assert_metric("unique-inverse --keys 1e8 --unique 10485760", "requests", 1.11e7, 3e-3);
    assert_metric("unique --keys 1000 --requests 1", "unique_keys", 1.0, 1e-9);
    assert_metric("unique --keys 1e12 --skew 1 --requests 1e6", "unique_keys", 5.4e5, 0.2);
    let object = model("unique-inverse --keys 1000 --unique 1000");
    assert!(object["metrics"]["requests"].is_null(), "{object}");
    assert_eq!(object["bench"], "model");
    assert_eq!(object["case"], "unique-inverse");
    assert_eq!(object["config"]["keys"], 1000.0);
    let dense = metric("density --keys 1e6 --size 1e5 --distance 999999", "density");
    let sparse = metric("density --keys 1e6 --size 1e5 --distance 1000", "density");
    assert!(dense > 0.15 && sparse < 0.001);
}

#[test]
fn designs_print_the_figures_of_their_papers() {
    let leveldb =
        "leveldb --keys 1e8 --wal 4194.304 --level0-tables 4 --sizes 10485.76,104857.6,1048576,10485760";
    assert_metric(leveldb, "write_amplification", 25.82, 0.001);
    assert_metric(leveldb, "write_amplification_level_3_to_4", 6.32, 0.01);
    // A list that ends with the last level means the same.
    assert_metric(&format!("{leveldb},1e8"), "write_amplification", 25.82, 0.001);
    let silt = "silt --keys 25e6 --table 131072 --occupancy 0.93 --hash-stores 62";
    assert_metric(silt, "write_amplification", 5.4, 0.01);
    assert_metric(&format!("{silt} --skew 0.99"), "write_amplification", 3.0, 0.02);
    assert_metric("silt-closed-form", "device_lifetime_years", 3.15, 0.002);
    assert_metric("silt-closed-form", "bytes_per_item", 0.73, 0.01);
    assert_metric("lsm-trie --keys 1.6e11", "write_amplification", 5.0, 0.01);
    assert_metric("lsm-trie --keys 1.6e11", "false_positive_rate_per_100_runs", 0.0459, 0.01);
    assert_metric("skimpystash --design base", "bytes_per_item", 0.4, 1e-9);
    assert_metric("skimpystash --design enhanced", "bytes_per_item", 1.5, 1e-9);
    assert_metric("skimpystash --chain-length 10", "reads_per_get_published", 5.0, 1e-9);
    assert_metric("slimdb", "memory_bytes", 267.0 * 1_048_576.0, 0.002);
    assert_metric(
        "cola --keys 1e6 --skew 0.5 --wal 100 --levels 3 --growth 4",
        "write_amplification",
        620.0,
        0.05,
    );
    assert_metric("samt --keys 1e6 --wal 1000 --levels 3 --growth 10", "write_amplification", 13.0, 0.01);
}

#[test]
fn level_sizes_that_write_least_are_those_of_the_thesis() {
    assert_metric("optimize-levels --keys 1e8", "write_amplification", 23.67, 0.001);
    assert_metric("optimize-levels --keys 1e8", "write_amplification_before", 25.82, 0.001);
    assert_metric("optimize-levels --keys 1e8", "level_1_size", 47_891.0, 0.01);
    // With fewer levels more can be gained: three levels instead of five, compared with sizes that grow evenly.
    assert!(metric("optimize-levels --keys 1e8", "saved_share") > 0.08);
    let refused = papers(Path::new("."), "model optimize-levels --levels 99");
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn the_best_slimdb_layout_is_no_worse_than_the_published_one() {
    let published = metric("slimdb --positive 0.4 --negative 0.3 --write 0.3", "reads_per_operation");
    let line = "slimdb --positive 0.4 --negative 0.3 --write 0.3 --memory-bytes 280379392";
    assert!(metric(line, "reads_per_operation") <= published);
    assert_eq!(metric("slimdb --layouts 6,6,6,2,3", "memory_bytes"), 280_379_392.0);
    let output = papers(Path::new("."), "model slimdb --frontier --json");
    assert!(output.stdout.split(|&byte| byte == b'\n').count() > 10);
}

#[test]
fn a_plan_comes_from_a_file_or_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let printed = papers(directory.path(), "model plan --print silt");
    std::fs::write(directory.path().join("plan.json"), &printed.stdout).unwrap();
    let run = |line: &str| papers(directory.path(), line);
    let from_file = run("model plan --file plan.json --keys 2e7 --load --json");
    let named = run("model plan --name silt --keys 2e7 --load --json");
    let metrics = |output: &Output| -> Value {
        let object: Value = serde_json::from_slice(&output.stdout).unwrap();
        object["metrics"].clone()
    };
    assert_eq!(metrics(&from_file), metrics(&named));
    for name in ["lsm-trie", "slimdb", "slimdb-tiering", "leveled", "skimpystash"] {
        let object = model(&format!("plan --name {name} --keys 1e9 --skew 0.99"));
        assert!(object["metrics"]["write_amplification"].as_f64().unwrap() >= 1.0, "{object}");
    }
    std::fs::write(directory.path().join("wrong.json"), "{}").unwrap();
    assert_eq!(run("model plan --file wrong.json").status.code(), Some(2));
    assert_eq!(run("model plan --file absent.json").status.code(), Some(1));
    assert_eq!(run("model plan --name btree").status.code(), Some(2));
    assert_eq!(run("model plan").status.code(), Some(2));
}

#[test]
fn a_measured_histogram_stands_for_a_skew() {
    let directory = tempfile::tempdir().unwrap();
    let lines: String = (1..=1000).map(|rank| format!("{} 1\n", 1e6 / f64::from(rank))).collect();
    std::fs::write(directory.path().join("requests.txt"), lines).unwrap();
    let run = |line: &str| papers(directory.path(), line);
    let measured = run("model unique --histogram requests.txt --requests 500 --json");
    let measured: Value = serde_json::from_slice(&measured.stdout).unwrap();
    let zipf = metric("unique --keys 1000 --skew 1 --requests 500", "unique_keys");
    let ratio = measured["metrics"]["unique_keys"].as_f64().unwrap() / zipf;
    assert!((ratio - 1.0).abs() < 1e-6, "{ratio}");
    std::fs::write(directory.path().join("wrong.txt"), "3 4\nfive 6\n").unwrap();
    let refused = run("model unique --histogram wrong.txt --requests 500");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("line 2"), "{refused:?}");
}

#[test]
fn a_simulation_stands_beside_its_model() {
    for line in [
        "simulate samt --keys 50000 --wal 500 --skew 0.99",
        "simulate cola --keys 50000 --wal 500",
        "simulate leveldb --keys 200000 --wal 420 --sizes 1049,10486 --table-items 210",
    ] {
        let object = model(line);
        let ratio = object["metrics"]["predicted"].as_f64().unwrap()
            / object["metrics"]["write_amplification"].as_f64().unwrap();
        assert!((ratio - 1.0).abs() < 0.05, "{line}: {object}");
    }
}

#[test]
fn wrong_parameters_are_told() {
    for (line, reason) in [
        ("unique --keys 0 --requests 1", "keys is 0"),
        ("unique --keys 10 --skew 99 --requests 1", "skew is 99"),
        ("unique --keys 10 --requests -1", "requests"),
        ("cola --growth 1", "growth is 1"),
        ("silt --keys 1e3", "fewer than the 1000 keys"),
        ("slimdb --levels 4", "--layouts"),
        ("plan --name silt --start-keys 0", "new keys only"),
        ("plan --name silt --keys 1e7 --memory-limit 10", "log index alone"),
        ("silt-closed-form --skew 1", "uniform"),
    ] {
        let output = papers(Path::new("."), &format!("model {line}"));
        assert_eq!(output.status.code(), Some(2), "{line}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains(reason), "{line}: {message}");
    }
}
