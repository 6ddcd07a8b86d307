//! Gets against a store that fails in the middle of a batch.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use alluvium_protocol::{Limits, Parser, memcached};

use super::{Form, GetBatch};
use crate::client::Client;
use crate::client_memory::ClientMemory;
use crate::connection::Connection;
use crate::connections::Connections;
use crate::session::Session;
use crate::socket::Stream;
use crate::store::{
    Attributes, Change, Database, DatabaseNumber, Databases, Found, Kind, Mark, Store, StoreError,
    StoreHealth,
};

/// Every key is its own value, until `failing`.
pub(crate) struct Echo {
    /// Whether commits fail.
    pub(crate) fails: bool,
}

impl Databases for Echo {
    fn database(&self, _: DatabaseNumber) -> &dyn Database {
        self
    }

    fn atomically(
        &self,
        _: &mut dyn FnMut(&dyn Databases) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        unreachable!("only gets")
    }
}

impl Store for Echo {
    fn commit(&self) -> Result<(), StoreError> {
        if self.fails { Err("no commit".into()) } else { Ok(()) }
    }

    fn open(&self, _: DatabaseNumber) -> Result<(), StoreError> {
        Ok(())
    }

    fn opened(&self) -> Vec<DatabaseNumber> {
        Vec::new()
    }

    fn health(&self) -> StoreHealth {
        StoreHealth::Healthy
    }

    fn resume(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        0
    }

    fn memory_bytes_max(&self) -> u64 {
        0
    }
}

impl Database for Echo {
    fn get_many(
        &self,
        keys: &[&[u8]],
        each: &mut dyn FnMut(usize, Option<Found<'_>>),
    ) -> Result<(), StoreError> {
        for (position, key) in keys.iter().enumerate() {
            let found = Found {
                kind: Kind::String,
                value: key,
                flags: 0,
                expires_at_ms: None,
                mark: Mark::default(),
            };
            match *key {
                b"failing" => return Err("lost".into()),
                b"absent" => each(position, None),
                b"hash" => each(position, Some(Found { kind: Kind::Hash, ..found })),
                _ => each(position, Some(found)),
            }
        }
        Ok(())
    }

    fn prefetch(&self, keys: &[&[u8]]) -> Result<usize, StoreError> {
        Ok(keys.iter().filter(|key| key.starts_with(b"on flash")).count())
    }

    fn contains(&self, _: &[u8]) -> Result<bool, StoreError> {
        unreachable!("only gets")
    }

    fn get_any(&self, _: &[u8], _: &mut dyn FnMut(Found<'_>)) -> Result<(), StoreError> {
        unreachable!("only gets in batches")
    }

    fn insert_with(&self, _: &[u8], _: &[u8], _: Attributes) -> Result<(), StoreError> {
        unreachable!("only gets")
    }

    fn insert_many(&self, _: &mut dyn Iterator<Item = (&[u8], &[u8])>) -> Result<(), StoreError> {
        unreachable!("only gets")
    }

    fn update_any(&self, _: &[u8], _: &mut dyn FnMut(Option<Found<'_>>) -> Change) -> Result<(), StoreError> {
        unreachable!("only gets")
    }

    fn scan(&self, _: u64, _: usize, _: &mut dyn FnMut(&[u8])) -> Result<u64, StoreError> {
        unreachable!("only gets")
    }

    fn approximate_len(&self) -> u64 {
        0
    }

    fn count(&self, _: &mut dyn FnMut() -> bool) -> Result<Option<u64>, StoreError> {
        unreachable!("only gets")
    }

    fn count_within(&self, _: u64) -> Result<Option<u64>, StoreError> {
        unreachable!("only gets")
    }

    fn clear(&self) -> Result<(), StoreError> {
        unreachable!("only gets")
    }
}

pub(crate) fn connections(count: usize) -> Connections {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let users = crate::acl::Users::new(crate::commands::catalog(), None, None).unwrap();
    let mut connections = Connections::default();
    for number in 0..count {
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let client = Client::new(number as u64, None, Arc::clone(users.default()));
        let session = Session::new(client);
        let parser = Parser::new(Limits::default());
        let memcached = memcached::Parser::new(Default::default());
        assert_eq!(
            connections.insert(Connection::new(Stream::Internet(stream), session, parser, memcached)),
            number
        );
    }
    connections
}

fn run(gets: &[(usize, &str)], clients: usize) -> Vec<String> {
    let mut connections = connections(clients);
    let mut batch = GetBatch::default();
    for (number, key) in gets {
        connections[*number].gets_queued += 1;
        batch.push(*number, DatabaseNumber::default(), key.as_bytes(), b"", Form::Bulk);
    }
    batch.execute(&mut connections, &Echo { fails: false }, &ClientMemory::new(0, Duration::ZERO), 1000);
    (0..clients)
        .map(|number| {
            assert_eq!(connections[number].gets_queued, 0);
            connections[number].output.escape_ascii().to_string()
        })
        .collect()
}

#[test]
fn replies_go_to_their_clients_in_order() {
    let gets = [(0, "a"), (1, "b"), (0, "absent"), (1, "c"), (0, "d"), (1, "hash")];
    let wrong = r"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    let second = format!(r"$1\r\nb\r\n$1\r\nc\r\n{wrong}");
    assert_eq!(run(&gets, 2), [r"$1\r\na\r\n$-1\r\n$1\r\nd\r\n", &second]);
}

#[test]
fn every_get_after_a_failure_gets_the_error() {
    let gets = [(0, "a"), (1, "failing"), (0, "b"), (1, "c")];
    assert_eq!(run(&gets, 2), [r"$1\r\na\r\n-ERR lost\r\n", r"-ERR lost\r\n-ERR lost\r\n"]);
}

#[test]
fn a_connection_with_too_many_unread_replies_is_given_up() {
    let mut connections = connections(2);
    let mut batch = GetBatch::default();
    for (number, key) in [(0, "long key"), (1, "a"), (0, "long key"), (0, "b"), (1, "c")] {
        connections[number].gets_queued += 1;
        batch.push(number, DatabaseNumber::default(), key.as_bytes(), b"", Form::Bulk);
    }
    batch.execute(&mut connections, &Echo { fails: false }, &ClientMemory::new(0, Duration::ZERO), 20);
    assert!(connections[0].broken && connections[0].output.is_empty());
    assert!(!connections[1].broken);
    assert_eq!(connections[1].output.escape_ascii().to_string(), r"$1\r\na\r\n$1\r\nc\r\n");
    assert_eq!([0, 1].map(|number| connections[number].gets_queued), [0, 0]);
}
