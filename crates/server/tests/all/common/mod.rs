//! A server over a fresh database on a free port, and a client that speaks raw bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use alluvium::{Db, Durability};
use alluvium_protocol::{Value, request};
use alluvium_server::{Server, ServerError, ServerOptions, ShutdownHandle};
use tempfile::TempDir;

/// An empty database.
pub fn database(directory: &TempDir) -> Db {
    Db::builder(directory.path()).durability(Durability::Buffered).expected_items(10_000).open().unwrap()
}

/// A running server, stopped and joined when dropped.
pub struct Running {
    pub address: SocketAddr,
    #[cfg(feature = "tls")]
    pub tls_address: Option<SocketAddr>,
    pub shutdown: ShutdownHandle,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
    /// Removed after the server has ended.
    _directory: TempDir,
}

impl Running {
    pub fn start(options: ServerOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = ServerOptions { address: SocketAddr::from(([127, 0, 0, 1], 0)), ..options };
        let server = Server::bind(options, database(&directory)).unwrap();
        Self::run(server, directory)
    }

    pub fn run(server: Server, directory: TempDir) -> Self {
        let (address, shutdown) = (server.local_address(), server.shutdown_handle());
        #[cfg(feature = "tls")]
        let tls_address = server.tls_address();
        let thread = Some(std::thread::spawn(|| server.run()));
        Self {
            address,
            #[cfg(feature = "tls")]
            tls_address,
            shutdown,
            thread,
            _directory: directory,
        }
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Waits until the server has ended without being asked to.
    pub fn join(mut self) -> Result<(), ServerError> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.shutdown.shutdown();
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.unwrap().unwrap();
            }
        }
    }
}

/// A blocking connection.
pub struct Client {
    pub stream: TcpStream,
    received: Vec<u8>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        // If the server hangs, the test fails instead of hanging.
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, received: Vec::new() }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn send_request(&mut self, words: &[&str]) {
        let mut bytes = Vec::new();
        request::encode(words, &mut bytes);
        self.send(&bytes);
    }

    pub fn ask(&mut self, words: &[&str]) -> Value {
        self.send_request(words);
        self.reply().expect("a reply")
    }

    /// The next reply, `None` if the server closed the connection.
    pub fn reply(&mut self) -> Option<Value> {
        loop {
            if let Some((value, consumed)) = Value::decode(&self.received).unwrap() {
                self.received.drain(..consumed);
                return Some(value);
            }
            if !self.receive() {
                assert!(self.received.is_empty(), "half a reply: {}", self.received.escape_ascii());
                return None;
            }
        }
    }

    /// Exactly this many bytes of replies.
    pub fn raw(&mut self, bytes: usize) -> Vec<u8> {
        while self.received.len() < bytes && self.receive() {}
        let rest = self.received.split_off(bytes.min(self.received.len()));
        std::mem::replace(&mut self.received, rest)
    }

    /// All bytes until the server closes the connection.
    pub fn raw_to_end(&mut self) -> Vec<u8> {
        while self.receive() {}
        std::mem::take(&mut self.received)
    }

    fn receive(&mut self) -> bool {
        let mut buffer = [0; 1 << 16];
        match self.stream.read(&mut buffer) {
            Ok(read) => {
                self.received.extend_from_slice(&buffer[..read]);
                read > 0
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => false,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => self.receive(),
            Err(error) => panic!("{error}"),
        }
    }
}

pub fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

pub fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

pub fn error(text: &str) -> Value {
    Value::Error(text.as_bytes().to_vec())
}
