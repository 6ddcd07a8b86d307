//! Options of `bench server`.

use alluvium_base::units;

use super::{Mix, Operation, Protocol};
use crate::error::BenchError;

/// Options of `bench server`.
#[derive(Clone, Debug, clap::Args)]
pub struct ServerBenchOptions {
    /// Address of the server
    #[arg(long, default_value = "127.0.0.1:6379")]
    pub address: String,
    /// Protocol: that of Redis, or memcached's meta protocol
    #[arg(long, value_enum, default_value = "resp")]
    pub protocol: Protocol,
    /// Connections
    #[arg(long, default_value_t = 8)]
    pub connections: u64,
    /// Requests that are sent at a time on a connection; the next ones follow when all are answered
    #[arg(long, default_value_t = 16)]
    pub depth: usize,
    /// Threads of this client, which share the connections
    #[arg(long, default_value_t = 1)]
    pub threads: u64,
    /// Number of items
    #[arg(long, default_value_t = 1_000_000)]
    pub items: u64,
    /// Bytes of a value; a key has 16
    #[arg(long, default_value = "100", value_parser = units::parse_bytes)]
    pub value_size: u64,
    /// Shares of requests: get, set, setnx, incr, del, exists, echo
    #[arg(long, default_value = "get=95,set=5")]
    pub mix: Mix,
    /// How long requests are sent; 0 for not at all
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Store all items first
    #[arg(long)]
    pub load: bool,
    /// An absent item is a wrong answer
    #[arg(long)]
    pub all_present: bool,
    /// Process of the server: then its processor time is measured
    #[arg(long)]
    pub pid: Option<u32>,
    /// Seed of the requests
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl ServerBenchOptions {
    pub(super) fn check(&self) -> Result<(), BenchError> {
        let positive = [self.connections, self.depth as u64, self.threads, self.items];
        if positive.contains(&0) || self.threads > self.connections {
            return Err(BenchError::Usage(
                "connections, depth, threads and items are at least 1, and threads have connections each"
                    .into(),
            ));
        }
        let of_both = [Operation::Get, Operation::Set];
        if self.protocol == Protocol::Meta && !self.mix.is_of(&of_both) {
            return Err(BenchError::Usage("over the meta protocol there are only get and set".into()));
        }
        Ok(())
    }
}
