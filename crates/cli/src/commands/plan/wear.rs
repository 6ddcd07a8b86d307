//! The device's wear, as options.

use alluvium_model::models::Wear;

/// Parameters of the device's wear.
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
