//! The server as a process: running out of descriptors, what an orderly stop preserves, and what it says to those who
//! watch it.
#![cfg(unix)]

mod configured;
#[cfg(target_os = "linux")]
mod frames;
mod logged;
#[cfg(target_os = "linux")]
mod surviving;
mod watched;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// A running `alluvium serve` under its own limit of descriptors.
struct Serving {
    process: Child,
    port: u16,
    /// Where metrics are.
    metrics: Option<String>,
}

impl Serving {
    fn start(directory: &Path, descriptors: u32) -> Self {
        let line =
            format!("ulimit -n {descriptors}; exec \"$0\" serve --dir \"$1\" --port 0 --durability buffered");
        let mut command = Command::new("sh");
        command.args(["-c", &line, env!("CARGO_BIN_EXE_alluvium")]).arg(directory);
        Self::run(command, false)
    }

    /// Runs a command that becomes a server, and waits until it serves, at an address for metrics, too.
    fn run(mut command: Command, has_metrics: bool) -> Self {
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut messages = BufReader::new(process.stderr.take().unwrap());
        let mut line = || {
            let mut line = String::new();
            messages.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        };
        let first = line();
        let metrics = has_metrics.then(|| {
            let (_, rest) = first.split_once(" metrics=").unwrap_or_else(|| panic!("{first}"));
            rest.split_once("/metrics").unwrap().0.to_owned()
        });
        // So that the process never waits for the pipe.
        std::thread::spawn(move || messages.read_to_end(&mut Vec::new()));
        let port = first.rsplit(':').next().unwrap().parse().unwrap_or_else(|_| panic!("{first}"));
        Self { process, port, metrics }
    }

    fn client(&self) -> Client {
        Client(BufReader::new(self.connect()))
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Requests an orderly stop and waits for it.
    fn stop(&mut self) -> ExitStatus {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.process.wait().unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn send(&mut self, line: &str) {
        self.0.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
    }

    /// One line of a reply, followed by its bytes if it is a bulk reply.
    fn reply(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        let len = line.strip_prefix('$').and_then(|len| len.trim_end().parse::<usize>().ok());
        if let Some(len) = len {
            let mut bytes = vec![0; len + 2];
            self.0.read_exact(&mut bytes).unwrap();
            line = String::from_utf8(bytes).unwrap();
        }
        line.trim_end().to_owned()
    }

    /// A reply of one line; `None` when the server has closed the connection, whether or not it had read everything.
    fn reply_before_close(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn ask(&mut self, line: &str) -> String {
        self.send(line);
        self.reply()
    }
}

#[test]
fn idle_connections_leave_descriptors_to_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Serving::start(directory.path(), 512);
    let mut client = server.client();
    let info = client.ask("INFO clients");
    let clients_max = info.lines().find_map(|line| line.strip_prefix("maxclients:")).unwrap();
    let clients_max: usize = clients_max.parse().unwrap();
    assert!((1..256).contains(&clients_max), "{clients_max}");
    assert!(client.ask("CONFIG GET maxclients").starts_with('*'));
    (client.reply(), assert_eq!(client.reply(), clients_max.to_string()));
    // More connections than there are descriptors: those above the bound get an error and are closed.
    let idle: Vec<TcpStream> = (0..700).map(|_| server.connect()).collect();
    for stream in &idle[clients_max - 1..] {
        let mut said = String::new();
        let mut stream = stream;
        stream.read_to_string(&mut said).unwrap();
        assert_eq!(said, "-ERR max number of clients reached\r\n");
    }
    // Enough for many log segments and tables.
    let value = "x".repeat(1_000);
    let mut acknowledged = 0;
    for start in (0..90_000).step_by(500) {
        (start..start + 500).for_each(|number| client.send(&format!("SET key{number} {value}")));
        for number in start..start + 500 {
            assert_eq!(client.reply(), "+OK", "key{number}");
            acknowledged += 1;
        }
    }
    drop(idle);
    assert_eq!(client.ask("SET another value"), "+OK");
    assert!(server.client().ask("INFO persistence").contains("store_status:ok"));
    assert!(server.stop().success());
    let mut server = Serving::start(directory.path(), 512);
    let mut client = server.client();
    assert_eq!(client.ask("DBSIZE"), format!(":{}", acknowledged + 1));
    assert!(server.stop().success());
}
