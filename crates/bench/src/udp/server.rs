//! [`Target`]: the server under test.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use alluvium_server::{CacheSettings, CacheStore, Server, ServerError, ServerOptions, ShutdownHandle};

use super::threads::{self, WorkerTime};
use super::{Direction, UdpOptions};
use crate::error::BenchError;

/// The server under test: one that runs already, or one of this process.
pub(super) struct Target {
    pub address: SocketAddr,
    info: SocketAddr,
    process: u32,
    own: Option<(ShutdownHandle, JoinHandle<Result<(), ServerError>>)>,
}

/// What the server has counted so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub bursts: u64,
    pub received: u64,
    pub dropped: u64,
    pub handed_over: u64,
    pub not_handed_over: u64,
}

fn failed(what: impl std::fmt::Display) -> BenchError {
    BenchError::Io(std::io::Error::other(what.to_string()))
}

impl Target {
    pub(super) fn start(options: &UdpOptions) -> Result<Self, BenchError> {
        if let (Some(address), Some(info), Some(process)) = (options.address, options.info, options.pid) {
            return Ok(Self { address, info, process, own: None });
        }
        let settings = CacheSettings {
            item_bytes_mean: Some((options.key_size + options.value_size) as usize),
            is_directed: true,
            ..CacheSettings::new(options.cache)
        };
        let store = CacheStore::new(settings, options.workers).map_err(failed)?;
        let server_options = ServerOptions {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            udp_port: Some(0),
            udp_mode: options.mode.of_server(),
            udp_hands_over: options.direction == Direction::Software,
            udp_poll: Duration::from_micros(options.poll_us),
            workers: NonZeroUsize::new(options.workers).unwrap_or(NonZeroUsize::MIN),
            ..ServerOptions::default()
        };
        let server = Server::with_store(server_options, Arc::new(store)).map_err(failed)?;
        let address = server.udp_address().ok_or_else(|| failed("no datagrams are served"))?;
        let (info, shutdown) = (server.local_address(), server.shutdown_handle());
        let thread = thread::spawn(move || server.run());
        Ok(Self { address, info, process: std::process::id(), own: Some((shutdown, thread)) })
    }

    /// Ends the server if it is of this process.
    pub(super) fn stop(self) -> Result<(), BenchError> {
        let Some((shutdown, thread)) = self.own else { return Ok(()) };
        shutdown.shutdown();
        thread.join().expect("no panic").map_err(failed)
    }

    /// Processor time that each of its workers has used.
    pub(super) fn worker_times(&self) -> Result<Vec<WorkerTime>, BenchError> {
        threads::worker_times(self.process)
    }

    /// What it has counted, by `INFO`.
    pub(super) fn counted(&self) -> Result<Counted, BenchError> {
        let stream = TcpStream::connect(self.info)?;
        (&stream).write_all(b"INFO stats\r\nQUIT\r\n")?;
        let mut counted = Counted::default();
        for line in BufReader::new(&stream).lines() {
            let line = line?;
            let Some((name, value)) = line.split_once(':') else { continue };
            let value = value.trim_end().parse().unwrap_or(0);
            match name {
                "datagram_bursts" => counted.bursts = value,
                "datagrams_received" => counted.received = value,
                "datagrams_dropped" => counted.dropped = value,
                "datagram_requests_handed_over" => counted.handed_over = value,
                "datagrams_not_handed_over" => counted.not_handed_over = value,
                _ => {}
            }
        }
        Ok(counted)
    }
}
