//! A store that fails and recovers: INFO reports it, and the server resumes it automatically.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{Client, Running, bulk, ok};
use alluvium_protocol::Value;
use alluvium_server::{
    Attributes, Change, Database, DatabaseNumber, Databases, Found, Kind, Mark, Server, ServerOptions, Store,
    StoreError, StoreHealth,
};

/// A map that accepts no writes while its disk is full, and no resumption before there is room.
#[derive(Default)]
struct Full {
    items: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    health: Mutex<Option<StoreHealth>>,
    /// Number of resumptions that will still fail.
    failures_left: AtomicU32,
    attempts: AtomicU32,
}

impl Full {
    fn fill(&self, failures: u32) {
        self.failures_left.store(failures, Ordering::SeqCst);
        let reason = "writing log-7: No space left\non device".to_owned();
        *self.health.lock().unwrap() = Some(StoreHealth::Failed { reason, resumable: true });
    }

    fn check(&self) -> Result<(), StoreError> {
        match self.health() {
            StoreHealth::Healthy | StoreHealth::Retrying { .. } => Ok(()),
            _ => Err("no space".into()),
        }
    }
}

impl Databases for Full {
    fn database(&self, _: DatabaseNumber) -> &dyn Database {
        self
    }

    fn atomically(
        &self,
        body: &mut dyn FnMut(&dyn Databases) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        body(self)
    }
}

impl Store for Full {
    fn open(&self, _: DatabaseNumber) -> Result<(), StoreError> {
        Ok(())
    }

    fn opened(&self) -> Vec<DatabaseNumber> {
        vec![DatabaseNumber::default()]
    }

    fn health(&self) -> StoreHealth {
        self.health.lock().unwrap().clone().unwrap_or(StoreHealth::Healthy)
    }

    fn resume(&self) -> Result<(), StoreError> {
        self.attempts.fetch_add(1, Ordering::SeqCst);
        let less = |left: u32| left.checked_sub(1);
        if self.failures_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
            return Err("no space yet".into());
        }
        *self.health.lock().unwrap() = None;
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        0
    }

    fn memory_bytes_max(&self) -> u64 {
        0
    }
}

impl Database for Full {
    fn get_many(
        &self,
        keys: &[&[u8]],
        each: &mut dyn FnMut(usize, Option<Found<'_>>),
    ) -> Result<(), StoreError> {
        let items = self.items.lock().unwrap();
        for (position, key) in keys.iter().enumerate() {
            let value = items.get(*key).map(Vec::as_slice);
            each(
                position,
                value.map(|value| Found {
                    kind: Kind::String,
                    value,
                    flags: 0,
                    expires_at_ms: None,
                    mark: Mark::default(),
                }),
            );
        }
        Ok(())
    }

    fn contains(&self, key: &[u8]) -> Result<bool, StoreError> {
        Ok(self.items.lock().unwrap().contains_key(key))
    }

    fn get_any(&self, _: &[u8], _: &mut dyn FnMut(Found<'_>)) -> Result<(), StoreError> {
        self.check()
    }

    fn insert_with(&self, key: &[u8], value: &[u8], _: Attributes) -> Result<(), StoreError> {
        self.check()?;
        self.items.lock().unwrap().insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn insert_many(&self, pairs: &mut dyn Iterator<Item = (&[u8], &[u8])>) -> Result<(), StoreError> {
        for (key, value) in pairs {
            self.insert(key, value, None)?;
        }
        Ok(())
    }

    fn update_any(&self, _: &[u8], _: &mut dyn FnMut(Option<Found<'_>>) -> Change) -> Result<(), StoreError> {
        self.check()
    }

    fn scan(&self, _: u64, _: usize, _: &mut dyn FnMut(&[u8])) -> Result<u64, StoreError> {
        Ok(0)
    }

    fn approximate_len(&self) -> u64 {
        self.items.lock().unwrap().len() as u64
    }

    fn count(&self, _: &mut dyn FnMut() -> bool) -> Result<Option<u64>, StoreError> {
        Ok(Some(self.approximate_len()))
    }

    fn count_within(&self, _: u64) -> Result<Option<u64>, StoreError> {
        Ok(Some(self.approximate_len()))
    }

    fn clear(&self) -> Result<(), StoreError> {
        self.check()
    }
}

fn serve() -> (Running, Arc<Full>) {
    let store = Arc::new(Full::default());
    let options = ServerOptions { address: SocketAddr::from(([127, 0, 0, 1], 0)), ..Default::default() };
    let server = Server::with_store(options, store.clone()).unwrap();
    (Running::run(server, tempfile::tempdir().unwrap()), store)
}

fn persistence(client: &mut Client) -> BTreeMap<String, String> {
    let Value::Bulk(text) = client.ask(&["INFO", "persistence"]) else { panic!("no text") };
    let text = String::from_utf8(text).unwrap();
    let fields = text.split("\r\n").filter_map(|line| line.split_once(':'));
    fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn the_server_resumes_a_store_that_has_room_again() {
    let (server, store) = serve();
    let mut client = server.client();
    let healthy = persistence(&mut client);
    for (name, value) in [
        ("store_status", "ok"),
        ("store_failure", ""),
        ("store_resumptions", "0"),
        ("rdb_last_bgsave_status", "ok"),
        ("aof_last_write_status", "ok"),
    ] {
        assert_eq!(healthy[name], value, "{name}");
    }
    store.fill(3);
    // Whether a write comes before or after the resumption depends on the threads; in the end it succeeds.
    while client.ask(&["SET", "key", "value"]) != ok() {
        std::thread::yield_now();
    }
    assert_eq!(store.attempts.load(Ordering::SeqCst), 4);
    let resumed = persistence(&mut client);
    assert_eq!((&*resumed["store_status"], &*resumed["store_resumptions"]), ("ok", "1"));
    assert_eq!(client.ask(&["GET", "key"]), bulk("value"));
}

#[test]
fn info_says_why_nothing_is_written() {
    let (server, store) = serve();
    let mut client = server.client();
    store.fill(u32::MAX);
    let failed = persistence(&mut client);
    for (name, value) in [
        ("store_status", "failed"),
        ("store_resumable", "1"),
        // A single line, whatever the reason contains.
        ("store_failure", "writing log-7: No space left on device"),
        ("rdb_last_bgsave_status", "err"),
        ("aof_last_write_status", "err"),
    ] {
        assert_eq!(failed[name], value, "{name}");
    }
    assert_eq!(client.ask(&["SET", "key", "value"]), Value::Error(b"ERR no space".to_vec()));
    // A store that cannot be resumed is left alone.
    let reason = "syncing log-7: Input/output error".to_owned();
    *store.health.lock().unwrap() = Some(StoreHealth::Failed { reason, resumable: false });
    assert_eq!(persistence(&mut client)["store_resumable"], "0");
    // Background work that is tried again does not stop writes, and is reported nevertheless.
    let reason = "writing table-9: No space left".to_owned();
    *store.health.lock().unwrap() = Some(StoreHealth::Retrying { reason: reason.clone() });
    let retrying = persistence(&mut client);
    assert_eq!((&*retrying["store_status"], &retrying["store_failure"]), ("retrying", &reason));
    assert_eq!(retrying["aof_last_write_status"], "ok");
    assert_eq!(client.ask(&["SET", "key", "value"]), ok());
    store.fill(u32::MAX);
    // A server that stops does not wait for the pause to end.
    server.shutdown.shutdown();
    server.join().unwrap();
}
