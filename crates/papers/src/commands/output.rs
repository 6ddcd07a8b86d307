//! Costs as named numbers.

use alluvium_bench::Measurement;
use alluvium_model::models::{Component, Cost, Wear};

/// Parameters of the device's wear, as options.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct WearOptions {
    /// Bytes of the device
    #[arg(long, default_value_t = Wear::default().device_bytes)]
    device_bytes: f64,
    /// Number of times that the device can be erased
    #[arg(long, default_value_t = Wear::default().erase_cycles)]
    erase_cycles: f64,
    /// Puts per second
    #[arg(long, default_value_t = Wear::default().puts_per_s)]
    puts_per_second: f64,
}

impl WearOptions {
    /// The parameters for items of this size.
    pub fn wear(&self, item_bytes: f64) -> Wear {
        let Self { device_bytes, erase_cycles, puts_per_second } = *self;
        Wear { device_bytes, erase_cycles, puts_per_s: puts_per_second, item_bytes }
    }
}

/// A measurement of `alluvium-papers model`.
pub fn measurement(case: &str) -> Measurement {
    Measurement::new("model", case)
}

/// Adds all numbers of a cost. `keys` is the number of keys present, for the total memory.
pub fn add_cost(measurement: Measurement, cost: &Cost, keys: f64, wear: &Wear) -> Measurement {
    let measurement = measurement
        .metric("write_amplification", cost.write_amplification())
        .metric("reads_per_get", cost.reads_per_get)
        .metric("reads_per_miss", cost.reads_per_miss)
        .metric("bytes_per_item", cost.bytes_per_item())
        .metric("memory_bytes", cost.bytes_per_item() * keys)
        .metric("space_amplification", cost.space_amplification())
        .metric("device_lifetime_years", cost.device_lifetime_years(wear));
    let measurement = add_components(measurement, "write_amplification", &cost.writes);
    let measurement = add_components(measurement, "bytes_per_item", &cost.memory);
    add_components(measurement, "space_amplification", &cost.space)
}

/// Adds the parts of a sum, each under the name `sum_part`.
pub fn add_components(measurement: Measurement, sum: &str, parts: &[Component]) -> Measurement {
    parts.iter().fold(measurement, |measurement, part| {
        let name = part.name.to_lowercase().replace(' ', "_");
        measurement.metric(&format!("{sum}_{name}"), part.amount)
    })
}
