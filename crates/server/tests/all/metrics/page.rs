//! The built-in page: that it is served, needs nothing else, and reads only what is there.

use std::collections::BTreeSet;

use alluvium::{Db, Durability};

use super::http::{Http, Scrape};
use super::{options, serve};
use crate::common::Running;

const PAGE_BYTES_MAX: usize = 60 << 10;

const DASHBOARD: &str = include_str!("../../../../../packaging/grafana/alluvium.json");

/// A server whose figures are all there: it has a memory limit, and data to predict for.
fn full() -> (Running, std::net::SocketAddr) {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path()).durability(Durability::Buffered).memory_bytes_max(64 << 20).open();
    let (server, metrics) = serve(options(), directory, db.unwrap());
    let mut client = server.client();
    for number in 0..2_000 {
        client.send_request(&["SET", &format!("key {number}"), "value"]);
    }
    (0..2_000).for_each(|_| drop(client.reply().unwrap()));
    client.ask(&["GET", "key 1"]);
    (server, metrics)
}

/// The names of metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let is_part =
        |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_';
    text.match_indices("alluvium_")
        .map(|(start, _)| &text[start..])
        .map(|rest| &rest[..rest.find(|character| !is_part(character)).unwrap_or(rest.len())])
        .collect()
}

#[test]
fn the_dashboard_asks_for_what_is_there() {
    let (_server, metrics) = full();
    let board: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    assert!(board["panels"].as_array().unwrap().len() > 20);
    let scrape = Scrape::of(metrics);
    let served: BTreeSet<&str> = scrape.names().collect();
    let asked = names(DASHBOARD);
    assert!(asked.len() > 30, "{asked:?}");
    let missing: Vec<_> = asked.difference(&served).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_page_needs_nothing_else_and_reads_what_is_there() {
    let (_server, metrics) = full();
    let page = Http::ask(metrics, "/");
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").starts_with("default-src 'none';"));
    assert!(page.body.len() <= PAGE_BYTES_MAX, "{}", page.body.len());
    for outside in ["http:", "https:", "//cdn", "src=", "@import", "url(", "<link"] {
        assert!(!page.body.contains(outside), "{outside}");
    }
    let stats: serde_json::Value = serde_json::from_str(&Http::ask(metrics, "/stats.json").body).unwrap();
    let read = names(&page.body);
    assert!(read.len() > 30, "{read:?}");
    for name in read {
        assert!(stats["metrics"][name].is_array(), "the page reads {name}");
    }
    // What it reads besides.
    for pointer in [
        "/at_ms",
        "/health/status",
        "/bucket_bounds_seconds/0",
        "/documents/engine/plan_decisions",
        "/documents/plan/plan",
        "/documents/plan/items",
        "/documents/plan/item_bytes",
        "/documents/plan/predicted/load/write_amplification",
        "/documents/plan/predicted/update/writes/0/name",
        "/documents/plan/predicted/update/writes/0/amount",
        "/documents/plan/predicted/update/reads_per_get",
        "/documents/plan/predicted/update/reads_per_miss",
        "/documents/plan/predicted/update/memory_bytes_per_item",
    ] {
        assert!(stats.pointer(pointer).is_some(), "{pointer}");
    }
    let labels = [
        ("alluvium_predicted_write_amplification", "workload", "load"),
        ("alluvium_predicted_reads_per_get", "key", "present"),
        ("alluvium_device_reads_total", "cause", "index"),
        ("alluvium_level_memory_bytes", "structure", "filter"),
        ("alluvium_commands_total", "command", "get"),
    ];
    for (name, label, value) in labels {
        let series = stats["metrics"][name].as_array().unwrap();
        assert!(series.iter().any(|series| series[label] == value), "{name}{{{label}={value}}}");
    }
}
