//! What a running server says to `alluvium stat --url`.

use std::path::Path;
use std::process::{Command, Output};

use super::Serving;

fn start(directory: &Path) -> Serving {
    let mut command = Command::new(env!("CARGO_BIN_EXE_alluvium"));
    command.args(["serve", "--port", "0", "--metrics", "127.0.0.1:0", "--durability", "buffered", "--dir"]);
    command.arg(directory.join("data"));
    Serving::run(command, true)
}

fn stat(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_alluvium")).arg("stat").args(arguments).output().unwrap()
}

#[test]
fn stat_prints_what_a_server_reports() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = start(directory.path());
    let url = server.metrics.clone().unwrap();
    let mut client = server.client();
    assert_eq!(client.ask("SET key value"), "+OK");
    assert_eq!(client.ask("GET key"), "value");
    assert!(client.ask("INCR key").starts_with("-ERR"));
    let text = String::from_utf8(stat(&["--url", &url]).stdout).unwrap();
    for row in ["health                 healthy", "command  ", "level 0", "write buffer", "log written"] {
        assert!(text.contains(row), "{row}: {text}");
    }
    let incr = text.lines().find(|line| line.starts_with("incr ")).unwrap();
    assert!(incr.ends_with(" 1"), "{incr}");
    let object = stat(&["--url", &url, "--json"]);
    let object: serde_json::Value = serde_json::from_slice(&object.stdout).unwrap();
    assert_eq!(object["documents"]["engine"]["items"], 1);
    assert_eq!(object["metrics"]["alluvium_puts_total"][0]["value"], 1);
    // Not at its other port, not after it has stopped, and not without a place to look at.
    let other = stat(&["--url", &format!("http://127.0.0.1:{}", server.port)]);
    assert_eq!((other.status.code(), other.stdout.len()), (Some(1), 0));
    assert!(server.stop().success());
    let gone = stat(&["--url", &url]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(String::from_utf8(gone.stderr).unwrap().starts_with("alluvium: cannot ask http://127.0.0.1:"));
    for wrong in [&[][..], &["--url", "ftp://x"], &["data", "--url", &url]] {
        assert_eq!(stat(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
