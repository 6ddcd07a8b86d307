//! How long a scrape takes: `cargo run --release -p alluvium-server --example scrape [KEYSPACES] [ITEMS]`.
//!
//! Fills keyspaces of a database in a temporary directory, serves it, and asks for each path a hundred times.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use alluvium::{Db, Durability};
use alluvium_server::{Server, ServerOptions};

const SCRAPES: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let keyspaces = arguments.next().transpose()?.unwrap_or(1_000);
    let items = arguments.next().transpose()?.unwrap_or(1_000);
    let directory = tempfile::tempdir()?;
    let db = Db::builder(directory.path()).durability(Durability::Buffered).open()?;
    for number in 0..keyspaces {
        let keyspace = db.keyspace(&format!("keyspace {number}"))?;
        for item in 0..items {
            keyspace.insert(format!("key {item}"), [b'x'; 100])?;
        }
    }
    db.flush()?;
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let options =
        ServerOptions { address: loopback, metrics_address: Some(loopback), ..ServerOptions::default() };
    let server = Server::bind(options, db.clone())?;
    let address = server.metrics_address().ok_or("no listener")?;
    let shutdown = server.shutdown_handle();
    let serving = std::thread::spawn(|| server.run());
    println!("{keyspaces} keyspaces of {items} items, {} tables", tables(&db));
    for path in ["/metrics", "/stats.json", "/health"] {
        let mut times = Vec::new();
        let mut bytes = 0;
        for _ in 0..SCRAPES {
            let begun = Instant::now();
            bytes = scrape(address, path)?;
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        let of = |share: usize| times[(SCRAPES - 1) * share / 100].as_secs_f64() * 1e3;
        println!(
            "{path:<12} {bytes:>7} bytes, {:.2} ms median, {:.2} ms p90, {:.2} ms max",
            of(50),
            of(90),
            of(100)
        );
    }
    shutdown.shutdown();
    serving.join().map_err(|_| "the server panicked")??;
    db.close()?;
    Ok(())
}

fn tables(db: &Db) -> usize {
    db.stats().levels.iter().map(|level| level.tables).sum()
}

fn scrape(address: SocketAddr, path: &str) -> Result<usize, Box<dyn Error>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    if answer.starts_with(b"HTTP/1.1 200") { Ok(answer.len()) } else { Err("no answer".into()) }
}
