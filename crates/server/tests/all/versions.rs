//! Built versions that are swapped under running clients.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use alluvium::{
    BuildJob, CommitOptions, Db, HashKey, ShardOptions, ShardWriter, commit_build, shard_directory,
};
use alluvium_protocol::Value;
use alluvium_server::{Server, ServerOptions, VersionsSettings, VersionsStore};

use crate::common::{Client, Running};

const KEYS: u32 = 500;

/// A build whose values name its version and their key.
fn build(root: &Path, version: u64, job: &BuildJob) {
    let directory = root.join(format!("{version:04}"));
    for shard in 0..job.shards {
        let path = shard_directory(&directory, shard);
        let mut writer = ShardWriter::create(path, job, shard, &ShardOptions::default()).unwrap();
        for key in (0..KEYS).map(|number| format!("key{number}")) {
            if job.shard_of(key.as_bytes()) == shard {
                writer.insert(&key, format!("{version} {key}")).unwrap();
            }
        }
        writer.finish().unwrap();
    }
    commit_build(&directory, &CommitOptions::default()).unwrap();
}

fn job() -> BuildJob {
    BuildJob::new("nightly", HashKey::from_bytes([7; 16]), 3)
}

fn store(root: &Path, keep: Option<usize>) -> Result<VersionsStore, String> {
    let open = Box::new(|path: &Path| Db::open_read_only(path));
    let settings = VersionsSettings { root: root.to_owned(), keep, checks: true, open };
    VersionsStore::open(settings).map_err(|error| error.to_string())
}

fn serve(root: &Path, keep: Option<usize>) -> Running {
    let options = ServerOptions { address: ([127, 0, 0, 1], 0).into(), ..Default::default() };
    let server = Server::with_store(options, Arc::new(store(root, keep).unwrap())).unwrap();
    Running::run(server, tempfile::tempdir().unwrap())
}

fn text(value: &Value) -> String {
    match value {
        Value::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Error(bytes) => format!("Error {}", String::from_utf8_lossy(bytes)),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join("\n"),
        other => format!("{other:?}"),
    }
}

/// The version of the answer, which must be right.
fn version_of(key: &str, value: &Value) -> u64 {
    let text = text(value);
    let (version, rest) = text.split_once(' ').unwrap_or_else(|| panic!("{key}: {text}"));
    assert_eq!(rest, key);
    version.parse().unwrap()
}

fn version(client: &mut Client, arguments: &[&str]) -> String {
    let request: Vec<&str> = [&["ALLUVIUM.VERSION"], arguments].concat();
    text(&client.ask(&request))
}

fn served(client: &mut Client) -> u64 {
    let info = text(&client.ask(&["INFO", "persistence"]));
    let start = info.find("version:").unwrap_or_else(|| panic!("{info}"));
    info[start + "version:".len()..].split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn versions_are_swapped_and_rolled_back_under_running_readers() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    (1..=3).for_each(|number| build(root, number, &job()));
    let server = serve(root, None);
    let (stop, answers) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let (server, stop, answers) = (&server, &stop, &answers);
            scope.spawn(move || {
                let mut client = server.client();
                let mut number = reader;
                while !stop.load(Ordering::Relaxed) {
                    number = (number * 7 + 1) % KEYS;
                    let key = format!("key{number}");
                    let found = version_of(&key, &client.ask(&["GET", &key]));
                    assert!((1..=3).contains(&found));
                    let other = format!("key{}", (number + 1) % KEYS);
                    // Commands of several keys, and transactions, see one version.
                    let Value::Array(both) = client.ask(&["MGET", &key, &other]) else { panic!("an array") };
                    assert_eq!(version_of(&key, &both[0]), version_of(&other, &both[1]));
                    client.ask(&["MULTI"]);
                    client.ask(&["GET", &key]);
                    client.ask(&["GET", &other]);
                    let Value::Array(both) = client.ask(&["EXEC"]) else { panic!("an array") };
                    assert_eq!(version_of(&key, &both[0]), version_of(&other, &both[1]));
                    answers.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut client = server.client();
        assert_eq!(served(&mut client), 3);
        for round in 0..20 {
            let before = answers.load(Ordering::Relaxed);
            let wanted = round % 2 + 1;
            let reply = version(&mut client, &["SWAP", &wanted.to_string()]);
            assert!(!reply.starts_with("Error"), "{reply}");
            assert_eq!(version_of("key7", &client.ask(&["GET", "key7"])), wanted);
            while answers.load(Ordering::Relaxed) < before + 3 {
                std::thread::yield_now();
            }
            if round % 3 == 0 {
                let reply = version(&mut client, &["ROLLBACK"]);
                assert!(!reply.starts_with("Error"), "{reply}");
                assert_ne!(served(&mut client), wanted);
            }
        }
        assert!(!version(&mut client, &["SWAP"]).starts_with("Error"));
        assert_eq!(served(&mut client), 3);
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn what_does_not_fit_is_refused_and_the_old_version_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    build(root, 1, &job());
    let server = serve(root, None);
    let mut client = server.client();
    build(root, 2, &BuildJob { hash_key: HashKey::from_bytes([8; 16]), ..job() });
    build(root, 3, &BuildJob { shards: 2, ..job() });
    build(root, 4, &job());
    std::fs::remove_file(root.join("0004/BUILD")).unwrap();
    build(root, 5, &BuildJob { keyspace: "other".to_owned(), ..job() });
    build(root, 6, &job());
    let shard = shard_directory(root.join("0006"), 1);
    let mut names = std::fs::read_dir(&shard).unwrap().map(|entry| entry.unwrap().path());
    let table = names.find(|path| path.to_string_lossy().contains("table-")).unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[5000] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let refusals = [
        ("2", "hash key"),
        ("3", "number of shards: expected 3, found 2"),
        ("4", "BUILD"),
        ("5", "keyspace"),
        ("6", "checksum"),
        ("7", "no version 7"),
    ];
    for (number, reason) in refusals {
        let reply = version(&mut client, &["SWAP", number]);
        assert!(reply.starts_with("Error") && reply.contains(reason), "{number}: {reply}");
        assert_eq!(version_of("key3", &client.ask(&["GET", "key3"])), 1);
    }
    assert!(version(&mut client, &["ROLLBACK"]).contains("no version was served before"));
    let info = text(&client.ask(&["INFO", "persistence"]));
    assert!(info.contains("version_refusals:6\r\n") && info.contains("version_job:nightly\r\n"), "{info}");
    let figures = text(&client.ask(&["ALLUVIUM.STATS"]));
    assert!(figures.contains("alluvium_version"), "{figures}");
    assert!(matches!(client.ask(&["SET", "key", "value"]), Value::Error(_)));
    assert!(matches!(client.ask(&["SELECT", "1"]), Value::Error(_)));
    let listed = version(&mut client, &["LIST"]);
    assert!(listed.contains("0001 build") && listed.contains("0004 incomplete"), "{listed}");
}

#[test]
fn the_youngest_versions_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    (1..=2).for_each(|number| build(root, number, &job()));
    let server = serve(root, Some(1));
    let mut client = server.client();
    assert_eq!(served(&mut client), 2);
    build(root, 3, &job());
    assert!(!version(&mut client, &["SWAP"]).starts_with("Error"));
    // The one before is kept for a rollback.
    assert!(!root.join("0001").exists() && root.join("0002").exists());
    assert!(!version(&mut client, &["ROLLBACK"]).starts_with("Error"));
    assert_eq!(version_of("key3", &client.ask(&["GET", "key3"])), 2);
    let error = store(&root.join("0003"), None).err().unwrap();
    assert!(error.contains("no complete version"), "{error}");
}
