//! Metrics, health and the page, over HTTP as browsers and Prometheus ask for them.

mod http;
mod page;

use std::net::SocketAddr;
use std::time::Duration;

use crate::common::{Running, database, ok};
use alluvium::Db;
use alluvium_protocol::{Value, request};
use alluvium_server::{Server, ServerError, ServerOptions};
use http::{Http, Scrape};
use tempfile::TempDir;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

fn options() -> ServerOptions {
    ServerOptions { address: LOOPBACK, metrics_address: Some(LOOPBACK), ..ServerOptions::default() }
}

fn start() -> (Running, SocketAddr) {
    let directory = tempfile::tempdir().unwrap();
    let db = database(&directory);
    serve(options(), directory, db)
}

fn serve(options: ServerOptions, directory: TempDir, db: Db) -> (Running, SocketAddr) {
    let server = Server::bind(options, db).unwrap();
    let metrics = server.metrics_address().unwrap();
    (Running::run(server, directory), metrics)
}

#[test]
fn commands_are_counted_and_timed() {
    let (server, metrics) = start();
    let mut client = server.client();
    let mut frames = Vec::new();
    for number in 0..100 {
        request::encode(&["SET", &format!("key {number}"), "value"], &mut frames);
    }
    request::encode(&["GET", "key 7"], &mut frames);
    request::encode(&["GET", "none"], &mut frames);
    request::encode(&["INCR", "key 7"], &mut frames);
    request::encode(&["NOSUCH"], &mut frames);
    client.send(&frames);
    (0..100).for_each(|_| assert_eq!(client.reply(), Some(ok())));
    let replies: Vec<_> = (0..4).map(|_| client.reply().unwrap()).collect();
    assert_eq!(replies[1], Value::Null);
    // A worker counts what it has sent a moment after clients get it.
    let began = std::time::Instant::now();
    let scrape = loop {
        let scrape = Scrape::of(metrics);
        if scrape.value("alluvium_network_sent_bytes_total") >= 500.0 {
            break scrape;
        }
        assert!(began.elapsed().as_secs() < 10);
    };
    let of = |name: &str, command: &str| scrape.value(&format!("{name}{{command=\"{command}\"}}"));
    for (command, count, failed) in
        [("set", 100.0, 0.0), ("get", 2.0, 0.0), ("incr", 1.0, 1.0), ("unknown", 1.0, 1.0)]
    {
        assert_eq!(of("alluvium_commands_total", command), count, "{command}");
        assert_eq!(of("alluvium_commands_failed_total", command), failed, "{command}");
        assert_eq!(of("alluvium_command_duration_seconds_count", command), count, "{command}");
        assert!(of("alluvium_command_duration_seconds_sum", command) > 0.0, "{command}");
    }
    assert_eq!(scrape.value("alluvium_absent_gets_total"), 1.0);
    assert_eq!(scrape.value("alluvium_network_received_bytes_total"), frames.len() as f64);
    assert!(scrape.value("alluvium_commit_duration_seconds_count") >= 1.0);
    assert!((1.0..=2.0).contains(&scrape.value("alluvium_get_batches_total")));
    assert_eq!(scrape.value("alluvium_clients"), 1.0);
    assert_eq!(scrape.value("alluvium_puts_total"), 100.0);
    assert_eq!(scrape.value("alluvium_level_items{level=\"log\"}"), 100.0);
    assert!(scrape.value("alluvium_put_bytes_total") > 1_000.0);
    assert_eq!(scrape.value("alluvium_written_bytes_total{cause=\"levels\"}"), 0.0);
    assert_eq!(scrape.value("alluvium_health{state=\"healthy\"}"), 1.0);
    assert_eq!(scrape.value("alluvium_health{state=\"failed\"}"), 0.0);
    assert_eq!(
        scrape.value(&format!("alluvium_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"))),
        1.0
    );
}

/// Each family is described once, before all of its samples; each series is there once; names have the product's
/// prefix; counters end in `_total`.
#[test]
fn the_text_is_well_formed() {
    let (server, metrics) = start();
    server.client().ask(&["SET", "key", "value"]);
    let text = Http::ask(metrics, "/metrics").body;
    assert!(text.ends_with("\n# EOF\n"));
    let (mut families, mut series) = (Vec::<(&str, &str)>::new(), std::collections::BTreeSet::new());
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            let family = family.split_once(' ').unwrap();
            assert!(families.iter().all(|(name, _)| *name != family.0), "{line}");
            families.push(family);
            continue;
        }
        let (family, kind) = *families.last().unwrap();
        if let Some(help) = line.strip_prefix("# HELP ") {
            assert!(help.starts_with(&format!("{family} ")) && help.ends_with('.'), "{line}");
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().unwrap().is_finite(), "{line}");
        assert!(series.insert(name), "{line}");
        let name = name.split('{').next().unwrap();
        assert!(name.starts_with("alluvium_"), "{line}");
        let suffix = name.strip_prefix(family).unwrap_or_else(|| panic!("{line} is not of {family}"));
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "gauge" => &[""],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_count", "_sum"],
            other => panic!("{other}"),
        };
        assert!(suffixes.contains(&suffix), "{line}");
    }
    assert!(families.len() > 50, "{}", families.len());
}

#[test]
fn stats_have_the_names_of_the_metrics() {
    let (server, metrics) = start();
    server.client().ask(&["SET", "key", "value"]);
    server.client().ask(&["GET", "key"]);
    let answer = Http::ask(metrics, "/stats.json");
    assert_eq!(answer.header("content-type"), "application/json");
    let stats: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(stats["health"], serde_json::json!({ "status": "healthy" }));
    assert_eq!(stats["documents"]["engine"]["items"], 1);
    let buckets = stats["bucket_bounds_seconds"].as_array().unwrap().len() + 1;
    let named = stats["metrics"].as_object().unwrap();
    let get = &named["alluvium_command_duration_seconds"][0];
    assert_eq!((&get["command"], &get["count"]), (&"get".into(), &1.into()));
    assert_eq!(get["buckets"].as_array().unwrap().len(), buckets);
    let scrape = Scrape::of(metrics);
    for name in scrape.names() {
        let name =
            ["_bucket", "_count", "_sum"].iter().fold(name, |name, suffix| match name.strip_suffix(suffix) {
                Some(family) if family.ends_with("_duration_seconds") => family,
                _ => name,
            });
        assert!(named.contains_key(name), "{name}");
    }
}

#[test]
fn requests_are_bounded_and_connections_stay() {
    let (_server, metrics) = start();
    let mut http = Http::connect(metrics);
    for _ in 0..3 {
        http.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
        let answer = http.answer();
        assert_eq!((answer.status, answer.body.as_str()), (200, "{\"status\":\"healthy\"}\n"));
        assert_eq!(answer.header("connection"), "keep-alive");
    }
    // Several at once, and in pieces.
    http.send("GET /health HTTP/1.1\r\n\r\nGET /none?x HTTP/1.1\r\n\r\nGET /heal");
    assert_eq!((http.answer().status, http.answer().status), (200, 404));
    http.send("th HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(http.answer().status, 200);
    assert!(http.is_closed());
    for (request, status) in [
        ("POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc".to_owned(), 405),
        ("GET /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc".to_owned(), 400),
        ("*1\r\n$4\r\nPING\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\nA: {}", "b".repeat(100_000)), 431),
    ] {
        let mut http = Http::connect(metrics);
        http.send(&request);
        assert_eq!(http.answer().status, status);
        http.end();
        assert!(http.is_closed());
    }
}

#[test]
fn many_silent_connections_keep_nobody_out() {
    let (_server, metrics) = start();
    let silent: Vec<_> = (0..200).map(|_| Http::connect(metrics)).collect();
    assert_eq!(Http::ask(metrics, "/health").status, 200);
    let closed =
        silent.into_iter().filter_map(|mut http| http.closes_within(Duration::from_millis(10)).then_some(()));
    assert!(closed.count() >= 168);
}

#[test]
fn it_listens_only_where_it_may() {
    let directory = tempfile::tempdir().unwrap();
    let db = database(&directory);
    let remote = Some(SocketAddr::from(([0, 0, 0, 0], 0)));
    let refused = Server::bind(ServerOptions { metrics_address: remote, ..options() }, db.clone());
    assert!(matches!(refused, Err(ServerError::RemoteMetricsAddress(address)) if Some(address) == remote));
    let allowed = ServerOptions { metrics_address: remote, allow_remote: true, ..options() };
    drop(Server::bind(allowed, db.clone()).unwrap());
    let none = Server::bind(ServerOptions { metrics_address: None, ..options() }, db).unwrap();
    assert_eq!(none.metrics_address(), None);
}
