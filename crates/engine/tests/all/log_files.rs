//! Log files are reused, and spare ones are removed when nothing is written.

use std::path::Path;
use std::time::{Duration, Instant};

use alluvium::Db;

fn log_files(directory: &Path) -> usize {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with("log-")).count()
}

#[test]
fn a_quiet_database_keeps_one_spare_log_file_at_most() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path()).open().unwrap();
    let keyspace = db.keyspace("items").unwrap();
    for round in 0..20_u32 {
        for item in 0..100_u32 {
            keyspace.insert(item.to_le_bytes(), round.to_le_bytes()).unwrap();
        }
        db.flush().unwrap();
        assert!(log_files(directory.path()) <= 5, "round {round}");
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while log_files(directory.path()) > 2 {
        assert!(Instant::now() < deadline, "{} log files", log_files(directory.path()));
        std::thread::sleep(Duration::from_millis(20));
    }
    for item in 0..100_u32 {
        assert_eq!(keyspace.get(item.to_le_bytes()).unwrap().as_deref(), Some(&19_u32.to_le_bytes()[..]));
    }
}
