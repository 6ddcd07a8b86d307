//! `alluvium plan` and `alluvium calibrate` as users run them.

use std::path::Path;
use std::process::Output;

use crate::common::alluvium;
use alluvium_model::Plan;
use alluvium_model::plan_model::{ItemSize, PlanModel, Workload};
use serde_json::Value;

fn text(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

/// The one JSON object that `LINE --json` prints.
fn object(directory: &Path, line: &str) -> Value {
    let output = alluvium(directory, &format!("{line} --json"));
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_plan_keeps_its_limits_and_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let answer =
        object(directory.path(), "plan --items 2e7 --memory 9MB --mix get=0.7,put=0.3 --miss-share 0.1");
    let recommended = &answer["recommended"];
    assert_eq!(recommended["executable"], true);
    assert!(recommended["memory_bytes"].as_f64().unwrap() <= 9e6);
    let sum: f64 = recommended["write_amplification_by_source"]
        .as_object()
        .unwrap()
        .values()
        .filter_map(Value::as_f64)
        .sum();
    assert!((sum / recommended["write_amplification"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    assert_eq!(answer["named"].as_array().unwrap().len(), Plan::NAMES.len());
    assert!(!answer["frontier"].as_array().unwrap().is_empty());
    assert!(!answer["explanation"].as_array().unwrap().is_empty());
    // The output is a plan that the model and the engine accept.
    let made = Plan::from_json(&recommended["plan"].to_string()).unwrap();
    let item = ItemSize { key_bytes: 16.0, value_bytes: 100.0, deviation_bytes: 0.0 };
    assert!(PlanModel::new(made, Workload::load(2e7, item).unwrap()).cost().is_ok());
    let explained = alluvium(directory.path(), "plan --items 2e7 --explain");
    assert!(
        text(&explained).contains("Chosen: log >") && text(&explained).contains("memory"),
        "{explained:?}"
    );
}

#[test]
fn limits_that_no_plan_keeps_fail_and_nonsense_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let none = alluvium(directory.path(), "plan --items 1e7 --memory 1kB --max-write-amplification 1");
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("No plan keeps all limits"), "{none:?}");
    for line in [
        "plan --mix fly=1",
        "plan --items 0",
        "plan --memory 5Moo",
        "plan --miss-share 2",
        "plan --write-weight -1",
        "calibrate data --seconds 21",
    ] {
        assert_eq!(alluvium(directory.path(), line).status.code(), Some(2), "{line}");
    }
    assert_eq!(alluvium(directory.path(), "plan --like nowhere").status.code(), Some(1));
    assert_eq!(alluvium(directory.path(), "plan --device nowhere").status.code(), Some(1));
}

#[test]
fn the_page_needs_no_network_and_has_its_pictures_as_tables() {
    let directory = tempfile::tempdir().unwrap();
    assert!(alluvium(directory.path(), "plan --items 1e7 --html plan.html").status.success());
    let page = std::fs::read_to_string(directory.path().join("plan.html")).unwrap();
    for part in ["<!doctype html>", "prefers-color-scheme:dark", "<desc", "<table>", "lsm-trie", "chosen"] {
        assert!(page.contains(part), "{part}");
    }
    for link in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(link), "{link}");
    }
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
}

/// `ALLUVIUM_DRAW=1 cargo test -p alluvium-cli --test all planning::` draws it anew.
#[test]
fn the_readme_shows_what_its_command_draws() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(repository.join("README.md")).unwrap();
    assert!(readme.contains("(docs/plan.svg)"));
    let line = readme.lines().find(|line| line.starts_with("alluvium plan --items")).unwrap();
    // No device is measured here: the planner then takes figures of its own.
    let line = line
        .replace("alluvium ", "")
        .replace(" --device data", "")
        .replace("--html plan.html", "--svg plan.svg");
    let directory = tempfile::tempdir().unwrap();
    let output = alluvium(directory.path(), &line);
    assert!(output.status.success(), "{line}: {output:?}");
    let drawn = std::fs::read_to_string(directory.path().join("plan.svg")).unwrap();
    assert!(drawn.starts_with("<svg xmlns=") && drawn.len() < 100_000, "{} bytes", drawn.len());
    let committed = repository.join("docs/plan.svg");
    if std::env::var_os("ALLUVIUM_DRAW").is_some() {
        std::fs::write(committed, drawn).unwrap();
    } else {
        let committed = std::fs::read_to_string(committed).unwrap();
        assert!(committed == drawn, "docs/plan.svg is stale: run this test with ALLUVIUM_DRAW=1");
    }
}

#[test]
fn a_device_is_measured_before_a_database_is_there_and_used_by_plans() {
    let directory = tempfile::tempdir().unwrap();
    let measured = object(directory.path(), "calibrate data --seconds 0.3");
    assert_eq!(measured["reads"].as_array().unwrap().len(), 5);
    let files: Vec<_> = std::fs::read_dir(directory.path().join("data")).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    for number in 0..20 {
        assert!(alluvium(directory.path(), &format!("put data key{number} value")).status.success());
    }
    let like = object(directory.path(), "plan --like data");
    assert_eq!(like["demand"]["items"], 20.0);
    assert_eq!(like["demand"]["device"], measured);
    assert!((like["demand"]["value_bytes"].as_f64().unwrap() - 5.0).abs() < 1e-9);
    assert_eq!(object(directory.path(), "plan --device data/DEVICE")["demand"]["device"], measured);
    let inspected = object(directory.path(), "inspect data");
    assert!(inspected["keyspaces"][0]["plan"]["levels"]["levels"].is_array(), "{inspected}");
    // Measuring again replaces the file; a damaged file is reported.
    assert!(alluvium(directory.path(), "calibrate data --seconds 0.2").status.success());
    let file = directory.path().join("data/DEVICE");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[30] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let damaged = alluvium(directory.path(), "plan --device data");
    assert_eq!(damaged.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&damaged.stderr).contains("corruption"), "{damaged:?}");
}

#[test]
fn a_database_gets_another_plan_and_its_data_follow() {
    let directory = tempfile::tempdir().unwrap();
    let lines: String =
        (0..30_000).map(|number| format!("{{\"key\":\"key{number}\",\"value\":\"value\"}}\n")).collect();
    std::fs::write(directory.path().join("items.jsonl"), lines).unwrap();
    assert!(alluvium(directory.path(), "import data --input items.jsonl").status.success());
    assert!(alluvium(directory.path(), "compact data").status.success());
    let begun = object(directory.path(), "plan apply data lsm-trie");
    assert!(begun["left"][0]["tables_left"].as_u64().is_some_and(|tables| tables > 0), "{begun}");
    let inspected = alluvium(directory.path(), "inspect data");
    assert!(text(&inspected).contains("left to move") && text(&inspected).contains("bucketed"));
    let ended = object(directory.path(), "plan apply data lsm-trie --wait");
    assert_eq!(ended["left"], serde_json::json!([]));
    let inspected = object(directory.path(), "inspect data");
    assert_eq!(inspected["keyspaces"][0]["plan"]["levels"]["levels"][0]["table"], "bucketed");
    assert_eq!(text(&alluvium(directory.path(), "get data key77")).trim_end(), "value");
    assert!(alluvium(directory.path(), "verify data").status.success());
    // A plan as the planner printed it, for one keyspace.
    let planned = object(directory.path(), "plan --items 1e6");
    std::fs::write(directory.path().join("plan.json"), planned.to_string()).unwrap();
    assert!(alluvium(directory.path(), "plan apply data plan.json --keyspace default").status.success());
    let inspected = object(directory.path(), "inspect data");
    assert_eq!(inspected["keyspaces"][0]["plan"], planned["recommended"]["plan"]);
    // A log whose items are chained, and a key that was stored by another plan.
    assert!(
        alluvium(directory.path(), "plan apply data skimpystash --keyspace default --wait").status.success()
    );
    let inspected = object(directory.path(), "inspect data");
    assert_eq!(inspected["keyspaces"][0]["plan"]["chained"]["chain_length_mean"], 10.0);
    assert_eq!(text(&alluvium(directory.path(), "get data key77")).trim_end(), "value");
    for (line, code) in [
        ("plan apply data castle", 2),
        ("plan apply nowhere silt", 1),
        ("plan apply data silt --keyspace nowhere", 1),
        ("plan apply data auto --keyspace default", 2),
    ] {
        assert_eq!(alluvium(directory.path(), line).status.code(), Some(code), "{line}");
    }
}
