//! A server on a free port, a client that speaks raw bytes, and a store that is obviously right.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use alluvium_protocol::{Value, request};
use alluvium_server::{Change, Server, ServerError, ServerOptions, ShutdownHandle, Store, StoreError};

/// A sorted map under one lock. A scan goes by a hash of the key, so a cursor is where the last one ended.
#[derive(Default)]
pub struct MapStore(RwLock<BTreeMap<Slot, Vec<u8>>>);

/// The hash and the key.
type Slot = (u64, Vec<u8>);

fn slot(key: &[u8]) -> Slot {
    // Any spread will do; 0 is the cursor of start and end.
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash.max(1), key.to_vec())
}

impl Store for MapStore {
    fn get_many(&self, keys: &[&[u8]], each: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<(), StoreError> {
        let map = self.0.read().unwrap();
        for (position, key) in keys.iter().enumerate() {
            if *key == b"failing" {
                return Err("this key always fails".into());
            }
            each(position, map.get(&slot(key)).map(Vec::as_slice));
        }
        Ok(())
    }

    fn contains(&self, key: &[u8]) -> Result<bool, StoreError> {
        Ok(self.0.read().unwrap().contains_key(&slot(key)))
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.0.write().unwrap().insert(slot(key), value.to_vec());
        Ok(())
    }

    fn insert_many(&self, pairs: &mut dyn Iterator<Item = (&[u8], &[u8])>) -> Result<(), StoreError> {
        let mut map = self.0.write().unwrap();
        map.extend(pairs.map(|(key, value)| (slot(key), value.to_vec())));
        Ok(())
    }

    fn update(&self, key: &[u8], change: &mut dyn FnMut(Option<&[u8]>) -> Change) -> Result<(), StoreError> {
        let mut map = self.0.write().unwrap();
        let slot = slot(key);
        match change(map.get(&slot).map(Vec::as_slice)) {
            Change::Keep => {}
            Change::Insert(value) => drop(map.insert(slot, value)),
            Change::Remove => drop(map.remove(&slot)),
        }
        Ok(())
    }

    fn scan(&self, cursor: u64, count: usize, each: &mut dyn FnMut(&[u8])) -> Result<u64, StoreError> {
        let map = self.0.read().unwrap();
        let mut last = 0;
        for (visited, ((hash, key), _)) in map.range((cursor, Vec::new())..).enumerate() {
            if visited >= count && *hash != last {
                return Ok(*hash);
            }
            each(key);
            last = *hash;
        }
        Ok(0)
    }

    fn approximate_len(&self) -> u64 {
        self.0.read().unwrap().len() as u64
    }

    fn clear(&self) -> Result<(), StoreError> {
        self.0.write().unwrap().clear();
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        0
    }

    fn memory_bytes_max(&self) -> u64 {
        0
    }
}

/// A running server, stopped and joined when dropped.
pub struct Running {
    pub address: SocketAddr,
    pub shutdown: ShutdownHandle,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
}

impl Running {
    pub fn start(options: ServerOptions) -> Self {
        let options = ServerOptions { address: SocketAddr::from(([127, 0, 0, 1], 0)), ..options };
        let server = Server::with_store(options, Arc::new(MapStore::default())).unwrap();
        let (address, shutdown) = (server.local_address(), server.shutdown_handle());
        Self { address, shutdown, thread: Some(std::thread::spawn(|| server.run())) }
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Waits until the server has ended by itself.
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
        // A hanging server fails the test instead of hanging it.
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

    /// The next reply, `None` when the server closed the connection.
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

    /// Exactly so many bytes of replies.
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
