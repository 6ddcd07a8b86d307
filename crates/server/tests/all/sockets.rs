//! Sockets other than those of the main address.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::common::Running;
use alluvium_server::ServerOptions;

/// Sends lines, then reads all replies until the server closes the connection.
fn converse(mut stream: impl Read + Write, lines: &str) -> String {
    stream.write_all(lines.as_bytes()).unwrap();
    let mut replies = String::new();
    stream.read_to_string(&mut replies).unwrap();
    replies
}

#[test]
fn clients_of_a_unix_socket_are_served() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("clients");
    let options = ServerOptions { unix_socket: Some(path.clone()), ..Default::default() };
    let server = Running::start(options);
    let mut other = server.client();
    other.ask(&["SET", "k", "v"]);
    let replies = converse(UnixStream::connect(&path).unwrap(), "GET k\r\nCLIENT INFO\r\nQUIT\r\n");
    let name = path.display();
    assert!(replies.starts_with("$1\r\nv\r\n"), "{replies}");
    assert!(replies.contains(&format!(" addr={name}:0 laddr={name}:0 ")), "{replies}");
    assert!(replies.contains(" flags=U "), "{replies}");
    drop(server);
    assert!(!path.exists());
}

#[cfg(feature = "tls")]
mod tls;
