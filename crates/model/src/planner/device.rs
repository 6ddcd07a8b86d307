//! [`DeviceFigures`]: what a device can do.

use serde::{Deserialize, Serialize};

use crate::error::{ModelError, positive, within};

/// Maximum number of depths at which reads are measured.
const DEPTHS_MAX: f64 = 64.0;

/// Rates of a device, as `alluvium calibrate` measures them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceFigures {
    /// Random reads of 4 KiB by the number in flight, ascending. At least one.
    pub reads: Vec<ReadRate>,
    /// Bytes written sequentially per second.
    pub write_bytes_per_s: f64,
    /// Bytes read sequentially per second.
    pub read_bytes_per_s: f64,
    /// Writes of 4 KiB per second, each followed by a sync, one at a time.
    pub syncs_per_s: f64,
}

/// The rate of random reads at one number of reads in flight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadRate {
    /// Reads in flight at any time.
    pub in_flight: u32,
    /// Reads per second.
    pub reads_per_s: f64,
}

impl Default for DeviceFigures {
    /// A virtual NVMe disk of a machine with two cores, used if nothing was measured.
    fn default() -> Self {
        let rate = |in_flight, reads_per_s| ReadRate { in_flight, reads_per_s };
        Self {
            reads: vec![rate(1, 15_800.0), rate(16, 58_000.0), rate(64, 77_000.0)],
            write_bytes_per_s: 3.0e9,
            read_bytes_per_s: 1.0e9,
            syncs_per_s: 4_400.0,
        }
    }
}

impl DeviceFigures {
    /// The highest rate of random reads at any depth.
    pub fn reads_per_s_max(&self) -> f64 {
        self.reads.iter().map(|rate| rate.reads_per_s).fold(0.0, f64::max)
    }

    /// Refuses invalid rates.
    pub fn validate(&self) -> Result<(), ModelError> {
        within("number of read rates", self.reads.len() as f64, 1.0, DEPTHS_MAX)?;
        for rate in &self.reads {
            positive("reads in flight", f64::from(rate.in_flight))?;
            positive("reads per second", rate.reads_per_s)?;
        }
        positive("bytes written per second", self.write_bytes_per_s)?;
        positive("bytes read per second", self.read_bytes_per_s)?;
        positive("syncs per second", self.syncs_per_s)?;
        Ok(())
    }
}
