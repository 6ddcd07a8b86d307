//! Options of `bench udp`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use alluvium_base::units;
use alluvium_protocol::datagram::{DATAGRAM_BYTES_MAX, HEADER_BYTES, Padding, REQUEST_HEAD_BYTES};
use alluvium_server::UdpMode;
use clap::ValueEnum;

use crate::error::BenchError;

/// Which workers execute a request; MICA's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// All.
    Crcw,
    /// All for reads, the owner of the key for writes.
    Crew,
    /// The owner of the key.
    Erew,
}

impl Mode {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crcw => "crcw",
            Self::Crew => "crew",
            Self::Erew => "erew",
        }
    }

    pub(super) fn of_server(self) -> UdpMode {
        match self {
            Self::Crcw => UdpMode::Shared,
            Self::Crew => UdpMode::ConcurrentReads,
            Self::Erew => UdpMode::Exclusive,
        }
    }
}

/// Who sends a request to a worker that executes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Direction {
    /// The client, by the server's directory.
    Client,
    /// The server: clients send to all workers in turn, and these hand requests over.
    Software,
}

impl Direction {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Software => "software",
        }
    }
}

/// Options of `bench udp`.
#[derive(Clone, Debug, clap::Args)]
pub struct UdpOptions {
    /// Requests in a datagram
    #[arg(long, default_value_t = 25)]
    pub batch: usize,
    /// Datagrams of a call, which are sent at a time; by default those that fit in 48 KiB, 256 at most
    #[arg(long)]
    pub window: Option<usize>,
    /// Calls of each thread that are under way at a time, so that the server has the next one while replies are read
    #[arg(long, default_value_t = 4)]
    pub calls: usize,
    /// Threads of this client
    #[arg(long, default_value_t = 1)]
    pub threads: u64,
    /// Number of items
    #[arg(long, default_value_t = 1_000_000)]
    pub items: u64,
    /// Bytes of a key, 8 at least
    #[arg(long, default_value = "8", value_parser = units::parse_bytes)]
    pub key_size: u64,
    /// Bytes of a value, 8 at least
    #[arg(long, default_value = "8", value_parser = units::parse_bytes)]
    pub value_size: u64,
    /// Share of gets; the others are sets
    #[arg(long, default_value_t = 0.95)]
    pub get_share: f64,
    /// How uneven the popularity of items is, by Zipf's law; 0 for all alike, 0.99 as in MICA's measurements
    #[arg(long, default_value_t = 0.0)]
    pub skew: f64,
    /// Requests a second that are offered, whether the server keeps up or not; without it, as many as it answers
    #[arg(long)]
    pub rate: Option<f64>,
    /// How long datagrams are sent to the echo, and then requests to the server
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Server that runs already, at the first of its ports for datagrams; without it, one is started in this process
    #[arg(long, requires = "info", requires = "pid")]
    pub address: Option<SocketAddr>,
    /// Where that server answers INFO
    #[arg(long)]
    pub info: Option<SocketAddr>,
    /// Process of that server
    #[arg(long)]
    pub pid: Option<u32>,
    /// Workers of the server that is started
    #[arg(long, default_value_t = 1)]
    pub workers: usize,
    /// Which of its workers execute a request
    #[arg(long, value_enum, default_value_t = Mode::Crcw, conflicts_with = "address")]
    pub mode: Mode,
    /// Who sends a request to such a worker
    #[arg(long, value_enum, default_value_t = Direction::Client, conflicts_with = "address")]
    pub direction: Direction,
    /// Size of its cache
    #[arg(long, default_value = "256MiB", value_parser = units::parse_bytes)]
    pub cache: u64,
    /// How long its workers poll before they sleep, in microseconds
    #[arg(long, default_value_t = 0)]
    pub poll_us: u64,
    /// Sends as many requests to a memcached afterwards, which is started with one thread and a socket of its own
    #[arg(long, value_name = "PROGRAM", num_args = 0..=1, default_missing_value = "memcached")]
    pub with_memcached: Option<PathBuf>,
    /// Seed of the requests
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self {
            batch: 25,
            window: None,
            calls: 4,
            threads: 1,
            items: 1_000_000,
            key_size: 8,
            value_size: 8,
            get_share: 0.95,
            skew: 0.0,
            rate: None,
            seconds: 5.0,
            address: None,
            info: None,
            pid: None,
            workers: 1,
            mode: Mode::Crcw,
            direction: Direction::Client,
            cache: 256 << 20,
            poll_us: 0,
            with_memcached: None,
            seed: 1,
        }
    }
}

impl UdpOptions {
    /// Maximum datagrams in a call. The buffer of a socket has room for four calls. A worker that wakes finds a large
    /// burst, so the wake-up costs little for each request.
    pub(super) fn window(&self) -> usize {
        self.window.unwrap_or_else(|| ((48 << 10) / self.datagram_bytes()).clamp(1, 256))
    }

    /// The time between two calls of a thread at the offered rate.
    pub(super) fn call_interval(&self) -> Option<Duration> {
        let requests = (self.batch * self.window()) as f64 * self.threads as f64;
        self.rate.map(|rate| Duration::from_secs_f64(requests / rate))
    }

    /// Bytes of a datagram with requests, nearly all of them gets.
    pub(super) fn datagram_bytes(&self) -> usize {
        let key_bytes = (self.key_size as usize).next_multiple_of(8);
        let content = self.batch.saturating_mul(REQUEST_HEAD_BYTES + key_bytes);
        Padding::Train
            .end(HEADER_BYTES.saturating_add(content).min(DATAGRAM_BYTES_MAX))
            .min(DATAGRAM_BYTES_MAX)
    }

    pub(super) fn check(&self) -> Result<(), BenchError> {
        let [batch, window, calls, workers] =
            [self.batch, self.window(), self.calls, self.workers].map(|number| number as u64);
        let positive = [batch, window, calls, self.threads, self.items, workers];
        let (key, value) = (self.key_size, self.value_size);
        let is_sized = key >= 8 && value >= 8 && key.saturating_add(value) <= 1_400;
        if positive.contains(&0) || self.window() > 256 || !is_sized {
            return Err(BenchError::Usage(
                "batch, window, calls, threads, items and workers are at least 1, a window has at most 256 datagrams, \
                 a key and a value at least 8 bytes and both together at most 1400"
                    .into(),
            ));
        }
        if !(0.0..10.0).contains(&self.skew) || !self.rate.is_none_or(|rate| rate >= 1.0) {
            return Err(BenchError::Usage("a skew is at least 0 and below 10, a rate at least 1".into()));
        }
        Ok(())
    }
}
