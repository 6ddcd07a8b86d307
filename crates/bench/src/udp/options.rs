//! Options of `bench udp`.

use std::net::SocketAddr;

use alluvium_base::units;

use crate::error::BenchError;

/// Options of `bench udp`.
#[derive(Clone, Debug, clap::Args)]
pub struct UdpOptions {
    /// Requests in a datagram
    #[arg(long, default_value_t = 25)]
    pub batch: usize,
    /// Datagrams that are sent at a time; the next ones follow when all are answered
    #[arg(long, default_value_t = 64)]
    pub window: usize,
    /// Threads of this client
    #[arg(long, default_value_t = 1)]
    pub threads: u64,
    /// Number of items
    #[arg(long, default_value_t = 1_000_000)]
    pub items: u64,
    /// Bytes of a value, 8 at least; a key has 8
    #[arg(long, default_value = "8", value_parser = units::parse_bytes)]
    pub value_size: u64,
    /// Share of gets; the others are sets
    #[arg(long, default_value_t = 0.95)]
    pub get_share: f64,
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
    /// Size of its cache
    #[arg(long, default_value = "256MiB", value_parser = units::parse_bytes)]
    pub cache: u64,
    /// How long its workers poll before they sleep, in microseconds
    #[arg(long, default_value_t = 0)]
    pub poll_us: u64,
    /// Seed of the requests
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self {
            batch: 25,
            window: 64,
            threads: 1,
            items: 1_000_000,
            value_size: 8,
            get_share: 0.95,
            seconds: 5.0,
            address: None,
            info: None,
            pid: None,
            workers: 1,
            cache: 256 << 20,
            poll_us: 0,
            seed: 1,
        }
    }
}

impl UdpOptions {
    pub(super) fn check(&self) -> Result<(), BenchError> {
        let positive = [self.batch as u64, self.window as u64, self.threads, self.items, self.workers as u64];
        if positive.contains(&0) || self.window > 256 || !(8..=1_400).contains(&self.value_size) {
            return Err(BenchError::Usage(
                "batch, window, threads, items and workers are at least 1, a window has at most 256 datagrams, a value \
                 8 to 1400 bytes"
                    .into(),
            ));
        }
        Ok(())
    }
}
