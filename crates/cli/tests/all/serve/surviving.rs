//! A cache in a file, whose server is killed.

use std::path::Path;
use std::process::Command;

use super::Serving;

fn start(file: &Path, size: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_alluvium"));
    command.args(["serve", "--cache", size, "--port", "0", "--survive"]).arg(file);
    command
}

#[test]
fn a_cache_is_there_again_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cache");
    let mut server = Serving::run(start(&file, "16MiB"), false);
    let mut client = server.client();
    for number in 0..1000 {
        assert_eq!(client.ask(&format!("SET key{number} value{number}")), "+OK");
    }
    assert_eq!(client.ask("DEL key7"), ":1");
    assert_eq!(client.ask("SET key8 later"), "+OK");
    assert_eq!(client.ask("PEXPIREAT key9 1000"), ":1");
    assert_eq!(client.ask("SELECT 3"), "+OK");
    assert_eq!(client.ask("SET key1 of-three"), "+OK");

    // Another server does not take the file.
    let other = start(&file, "16MiB").output().unwrap();
    assert!(!other.status.success());
    let message = String::from_utf8_lossy(&other.stderr);
    assert!(message.contains(&format!("process {}", server.process.id())), "{message}");

    server.process.kill().unwrap();
    server.process.wait().unwrap();
    let mut server = Serving::run(start(&file, "16MiB"), false);
    let mut client = server.client();
    for number in 0..1000 {
        let value = client.ask(&format!("GET key{number}"));
        match number {
            7 | 9 => assert_eq!(value, "$-1"),
            8 => assert_eq!(value, "later"),
            _ => assert_eq!(value, format!("value{number}")),
        }
    }
    assert_eq!(client.ask("DBSIZE"), ":998");
    assert_eq!(client.ask("SELECT 3"), "+OK");
    assert_eq!(client.ask("GET key1"), "of-three");
    assert_eq!(client.ask("FLUSHALL"), "+OK");
    assert!(server.stop().success());

    // Another size is refused, and says what to do.
    let other = start(&file, "32MiB").output().unwrap();
    assert!(!other.status.success());
    let message = String::from_utf8_lossy(&other.stderr);
    assert!(message.contains("give the settings with which it was made"), "{message}");
    let mut reset = start(&file, "32MiB");
    reset.arg("--survive-reset");
    let mut server = Serving::run(reset, false);
    assert_eq!(server.client().ask("GET key1"), "$-1");
    assert!(server.stop().success());
}
