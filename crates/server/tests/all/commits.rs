//! Writes of a round become durable together.

use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::common::{Client, Running, bulk, error, ok};
use alluvium::{Db, Durability};
use alluvium_protocol::{Value, request};
use alluvium_server::{
    CacheSettings, CacheStore, Database, DatabaseNumber, Databases, Server, ServerOptions, Store, StoreError,
    StoreHealth,
};

#[test]
fn pipelined_writes_share_a_sync() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path()).durability(Durability::Sync).open().unwrap();
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Server::bind(ServerOptions { address, ..ServerOptions::default() }, db.clone()).unwrap();
    let running = Running::run(server, directory);
    let mut client = running.client();
    assert_eq!(client.ask(&["SET", "first", "value"]), ok());
    let syncs = db.stats().traffic.log_syncs;
    let mut frames = Vec::new();
    for number in 0..64 {
        request::encode(&["SET", &format!("key {number}"), "value"], &mut frames);
    }
    client.send(&frames);
    for _ in 0..64 {
        assert_eq!(client.reply(), Some(ok()));
    }
    // The frames came in one piece, or in two.
    let more = db.stats().traffic.log_syncs - syncs;
    assert!((1..=2).contains(&more), "{more} syncs");
    // A read alone waits for nothing.
    client.ask(&["GET", "key 63"]);
    assert_eq!(db.stats().traffic.log_syncs - syncs, more);
}

/// A store whose commits end when the test says so, and as it says.
struct HeldStore {
    items: CacheStore,
    state: Mutex<HeldCommits>,
    changed: Condvar,
}

#[derive(Default)]
struct HeldCommits {
    begun: usize,
    outcomes: Vec<Result<(), &'static str>>,
}

impl HeldStore {
    fn new() -> Arc<Self> {
        let items = CacheStore::new(CacheSettings::new(32 << 20), 1).unwrap();
        Arc::new(Self { items, state: Mutex::default(), changed: Condvar::new() })
    }

    /// Waits until commit `number` has begun, counted from 1.
    fn wait_for(&self, number: usize) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| state.begun < number).unwrap());
    }

    fn end_next(&self, outcome: Result<(), &'static str>) {
        self.state.lock().unwrap().outcomes.push(outcome);
        self.changed.notify_all();
    }
}

impl Databases for HeldStore {
    fn database(&self, number: DatabaseNumber) -> &dyn Database {
        self.items.database(number)
    }

    fn atomically(
        &self,
        body: &mut dyn FnMut(&dyn Databases) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.items.atomically(body)
    }
}

impl Store for HeldStore {
    fn commit(&self) -> Result<(), StoreError> {
        let mut state = self.state.lock().unwrap();
        state.begun += 1;
        let number = state.begun;
        self.changed.notify_all();
        let state = self.changed.wait_while(state, |state| state.outcomes.len() < number).unwrap();
        Ok(state.outcomes[number - 1]?)
    }

    fn commit_waits(&self) -> bool {
        true
    }

    fn open(&self, number: DatabaseNumber) -> Result<(), StoreError> {
        self.items.open(number)
    }

    fn opened(&self) -> Vec<DatabaseNumber> {
        self.items.opened()
    }

    fn health(&self) -> StoreHealth {
        self.items.health()
    }

    fn resume(&self) -> Result<(), StoreError> {
        self.items.resume()
    }

    fn memory_bytes(&self) -> u64 {
        self.items.memory_bytes()
    }

    fn memory_bytes_max(&self) -> u64 {
        self.items.memory_bytes_max()
    }
}

/// Asserts that a client gets nothing for a moment.
fn assert_silent(client: &Client) {
    let timeout = client.stream.read_timeout().unwrap();
    client.stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let error = client.stream.peek(&mut [0]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    client.stream.set_read_timeout(timeout).unwrap();
}

fn pipeline(client: &mut Client, requests: &[&[&str]]) {
    let mut frames = Vec::new();
    requests.iter().for_each(|words| request::encode(words, &mut frames));
    client.send(&frames);
}

#[test]
fn replies_wait_for_the_commits_of_what_they_have_seen() {
    let store = HeldStore::new();
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let workers = NonZeroUsize::new(2).unwrap();
    let options = ServerOptions { address, workers, ..ServerOptions::default() };
    let server = Server::with_store(options, store.clone()).unwrap();
    let running = Running::run(server, tempfile::tempdir().unwrap());
    let (mut writer, mut other) = (running.client(), running.client());
    writer.send_request(&["SET", "a", "1"]);
    store.wait_for(1);
    // The other worker serves its clients meanwhile, but what it has seen is not durable.
    other.send_request(&["GET", "a"]);
    assert_silent(&other);
    pipeline(&mut other, &[&["SET", "b", "2"], &["GET", "b"]]);
    assert_silent(&other);
    assert_silent(&writer);
    store.end_next(Ok(()));
    assert_eq!(writer.reply(), Some(ok()));
    assert_eq!(other.reply(), Some(bulk("1")));
    store.wait_for(2);
    let mut reader = running.client();
    reader.send_request(&["GET", "b"]);
    assert_silent(&reader);
    assert_silent(&other);
    // Its failure is that of the writes alone; replies keep their order.
    store.end_next(Err("lost"));
    assert_eq!([other.reply(), other.reply()], [Some(error("ERR lost")), Some(bulk("2"))]);
    assert_eq!(reader.reply(), Some(bulk("2")));
    // Nothing is left that would need a commit.
    assert_eq!(writer.ask(&["GET", "b"]), bulk("2"));
    // A client that leaves before the commit of its write is no obstacle.
    writer.send_request(&["SET", "c", "3"]);
    store.wait_for(3);
    drop(writer);
    store.end_next(Ok(()));
    assert_eq!(other.ask(&["GET", "c"]), bulk("3"));
    for _ in 0..8 {
        store.end_next(Ok(()));
    }
}

#[test]
fn a_worker_goes_on_while_another_thread_commits() {
    let store = HeldStore::new();
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let options = ServerOptions { address, workers: NonZeroUsize::MIN, ..ServerOptions::default() };
    let server = Server::with_store(options, store.clone()).unwrap();
    let running = Running::run(server, tempfile::tempdir().unwrap());
    let (mut first, mut second) = (running.client(), running.client());
    assert_eq!(second.ask(&["PING"]), Value::Simple(b"PONG".to_vec()));
    // The only worker commits by itself, and finds afterwards that the other client has sent something.
    first.send_request(&["SET", "a", "1"]);
    store.wait_for(1);
    second.send_request(&["INCR", "a"]);
    std::thread::sleep(Duration::from_millis(50));
    store.end_next(Ok(()));
    assert_eq!(first.reply(), Some(ok()));
    // So another thread makes the next commits, and the worker executes what comes meanwhile.
    store.wait_for(2);
    pipeline(&mut first, &[&["INCR", "a"], &["INCR", "a"]]);
    second.send_request(&["INCR", "a"]);
    assert_silent(&first);
    assert_silent(&second);
    store.end_next(Ok(()));
    assert_eq!(second.reply(), Some(Value::Integer(2)));
    store.wait_for(3);
    store.end_next(Ok(()));
    let replies = [first.reply(), first.reply(), second.reply()];
    let numbers: Vec<i64> = replies
        .into_iter()
        .map(|reply| match reply {
            Some(Value::Integer(number)) => number,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(numbers == [3, 4, 5] || numbers == [4, 5, 3], "{numbers:?}");
    for _ in 0..8 {
        store.end_next(Ok(()));
    }
}
