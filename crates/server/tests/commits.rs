//! Writes of a round become durable together.

mod common;

use alluvium::{Db, Durability};
use alluvium_protocol::request;
use alluvium_server::{Server, ServerOptions};
use common::{Running, ok};

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
