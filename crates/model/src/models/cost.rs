//! [`Cost`]: what a design costs, with its parts.

use crate::error::{ModelError, positive};

/// Seconds of a year of 365.25 days.
const YEAR_SECONDS: f64 = 31_557_600.0;

/// A part of a sum, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// Where the amount comes from, for example `log` or `level 0 to 1`.
    pub name: String,
    /// How much.
    pub amount: f64,
}

impl Component {
    /// A part with this name.
    pub fn new(name: impl Into<String>, amount: f64) -> Self {
        Self { name: name.into(), amount }
    }
}

/// What a design costs under a workload, on average over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Data written to the device for each unit put, by source. The sum is the write amplification.
    pub writes: Vec<Component>,
    /// Device reads for a get of a key that is present.
    pub reads_per_get: f64,
    /// Device reads for a get of a key that is not.
    pub reads_per_miss: f64,
    /// Memory used to find items, in bytes per live item, by kind.
    pub memory: Vec<Component>,
    /// Space on the device for each unit of live data, by kind. The sum is the space amplification.
    pub space: Vec<Component>,
}

fn sum(components: &[Component]) -> f64 {
    // An empty `sum()` of floats is −0.
    components.iter().fold(0.0, |sum, component| sum + component.amount)
}

impl Cost {
    /// Data written to the device for each unit put.
    pub fn write_amplification(&self) -> f64 {
        sum(&self.writes)
    }

    /// Bytes of memory per live item used to find it.
    pub fn bytes_per_item(&self) -> f64 {
        sum(&self.memory)
    }

    /// Space on the device for each unit of live data.
    pub fn space_amplification(&self) -> f64 {
        sum(&self.space)
    }

    /// Years until the device is worn out (SILT Eq. 8).
    pub fn device_lifetime_years(&self, wear: &Wear) -> f64 {
        wear.lifetime_years(self.write_amplification())
    }
}

/// What wears a device, and how much it endures. The default is the example of SILT's analysis (Lim's thesis, Table
/// 2.4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wear {
    /// Size of the device.
    pub device_bytes: f64,
    /// Number of times that each byte of it can be erased.
    pub erase_cycles: f64,
    /// Puts per second.
    pub puts_per_s: f64,
    /// Bytes of an item.
    pub item_bytes: f64,
}

impl Default for Wear {
    fn default() -> Self {
        Self {
            device_bytes: 256.0 * (1u64 << 30) as f64,
            erase_cycles: 10_000.0,
            puts_per_s: 5_000.0,
            item_bytes: 1_024.0,
        }
    }
}

impl Wear {
    /// Refuses invalid sizes or rates.
    pub fn validate(&self) -> Result<(), ModelError> {
        positive("device-bytes", self.device_bytes)?;
        positive("erase-cycles", self.erase_cycles)?;
        positive("puts-per-second", self.puts_per_s)?;
        positive("item-bytes", self.item_bytes)?;
        Ok(())
    }

    /// Years until every byte has been erased the maximum number of times, with perfect wear leveling (SILT Eq. 8).
    pub fn lifetime_years(&self, write_amplification: f64) -> f64 {
        let bytes_per_s = self.puts_per_s * self.item_bytes * write_amplification;
        self.device_bytes * self.erase_cycles / bytes_per_s / YEAR_SECONDS
    }
}
