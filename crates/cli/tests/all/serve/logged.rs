//! What a server writes about itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::Value;

#[test]
fn all_lines_are_json_where_that_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args(["serve", "--dir", "data", "--port", "0", "--clients-max", "1", "--log", "json"])
        .current_dir(directory.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map(|line| {
        let line = line.unwrap();
        let object: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        object
    });
    let serving = lines.next().unwrap();
    assert_eq!(serving["message"], "serving");
    assert_eq!(serving["store"], "data");
    let address = serving["address"].as_str().unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"CONFIG SET slowlog-max-len 7\r\n").unwrap();
    client.read_exact(&mut [0; 5]).unwrap();
    let mut refused = Vec::new();
    TcpStream::connect(address).unwrap().read_to_end(&mut refused).unwrap();
    client.write_all(b"FLUSHALL\r\nSHUTDOWN\r\n").unwrap();
    assert!(server.wait().unwrap().success());
    let rest: Vec<Value> = lines.collect();
    let said = |message: &str| {
        let line =
            rest.iter().find(|line| line["message"].as_str().is_some_and(|said| said.contains(message)));
        line.unwrap_or_else(|| panic!("{message}: {rest:?}"))
    };
    let peer = client.local_addr().unwrap().to_string();
    let changed = said("changes a setting");
    assert_eq!([&changed["name"], &changed["value"]], ["slowlog-max-len", "7"]);
    assert_eq!(changed["client"], peer.as_str());
    assert_eq!(said("a connection is refused")["clients_max"], 1);
    assert_eq!(said("removes all keys")["client"], peer.as_str());
    assert_eq!(said("stops the server")["level"], "INFO");
    said("the database is closed");
}

#[test]
fn nothing_is_written_where_no_log_is_wanted() {
    let directory = tempfile::tempdir().unwrap();
    // A socket in the file system shows that it serves.
    let path = directory.path().join("clients");
    let mut server = Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args(["serve", "--cache", "4MiB", "--port", "0", "--log", "off", "--unix-socket"])
        .arg(&path)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = std::time::Instant::now();
    let mut client = loop {
        match std::os::unix::net::UnixStream::connect(&path) {
            Ok(client) => break client,
            Err(error) => assert!(began.elapsed().as_secs() < 60, "{error}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    client.write_all(b"SHUTDOWN\r\n").unwrap();
    assert!(server.wait().unwrap().success());
    let mut text = String::new();
    server.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "");
    assert!(!path.exists());
}
