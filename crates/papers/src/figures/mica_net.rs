//! What MICA's figures over a network share: requests in datagrams to a cache, on the loopback.
//!
//! The thesis has 16 cores, eight network ports and other machines as clients. Here client and server share the
//! processors, so what is compared is the processor time of the server's workers, and rates are per core: one second of
//! a worker's processor time. Full throughput of the thesis is divided by its 16 cores.

use alluvium_bench::udp::{self, Direction, Mode, UdpOptions};
use alluvium_bench::{BenchError, Measurement, Report};

use super::Scale;

/// Cores of the thesis.
pub const CORES: f64 = 16.0;
/// Requests in a datagram, where nothing else is said; the thesis has one in a packet.
pub const BATCH: usize = 25;
/// Bytes of the items of one measurement.
const ITEM_BYTES_MAX: u64 = 256 << 20;
/// Bytes that an item takes beside its key and value, with room to spare.
const OVERHEAD_BYTES: u64 = 64;
/// The skew of the thesis.
pub const SKEWED: f64 = 0.99;

/// Bytes of key and value, by the names of the thesis.
#[derive(Clone, Copy, Debug)]
pub struct Items {
    pub name: &'static str,
    pub key_bytes: u64,
    pub value_bytes: u64,
}

/// The smallest items.
pub const TINY: Items = Items { name: "tiny", key_bytes: 8, value_bytes: 8 };

/// The options of a measurement of EREW with direction by the client, in which other cases differ.
pub fn options(scale: &Scale, items: Items, workers: usize) -> UdpOptions {
    let item_bytes = items.key_bytes + items.value_bytes + OVERHEAD_BYTES;
    let count = scale.simulated_keys_max.min(ITEM_BYTES_MAX / item_bytes).max(10_000);
    UdpOptions {
        batch: BATCH,
        items: count,
        key_size: items.key_bytes,
        value_size: items.value_bytes,
        cache: 2 * count * item_bytes + (32 << 20),
        workers,
        mode: Mode::Erew,
        direction: Direction::Client,
        // Tests have few keys and little time.
        seconds: (scale.simulated_keys_max as f64 / 2e6).clamp(0.05, 2.0),
        seed: scale.seed,
        ..UdpOptions::default()
    }
}

/// The figures of one measurement.
pub struct Measured(Measurement);

impl Measured {
    /// Measures.
    ///
    /// # Errors
    /// [`BenchError`]: a wrong answer, a socket.
    pub fn of(options: &UdpOptions) -> Result<Self, BenchError> {
        let mut report = Report::new(true);
        udp::run(options, &mut report)?;
        // The first is the echo.
        Ok(Self(report.measurements()[1].clone()))
    }

    /// The figures of this measurement.
    pub fn over(measurement: Measurement) -> Self {
        Self(measurement)
    }

    /// A figure by its name in the report of `bench udp`.
    pub fn get(&self, name: &str) -> f64 {
        self.0.metrics.get(name).and_then(|value| value.as_f64()).unwrap_or(0.0)
    }

    /// Million operations per second of a worker's processor time.
    pub fn millions_per_core(&self) -> f64 {
        self.get("ops_per_s_per_core") / 1e6
    }

    /// Million operations per second if each worker has a processor of its own: the busiest is the limit.
    pub fn millions_of_all_cores(&self) -> f64 {
        self.get("ops_per_s_of_all_cores") / 1e6
    }
}
