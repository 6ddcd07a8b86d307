//! [`Workload`]: what a program does with its database, as far as it knows.

use alluvium_model::plan_model::ItemSize;
use alluvium_model::planner::{Demand, DeviceFigures, Limits, OperationMix};
use alluvium_model::{KeyDistribution, ModelError};

/// What a program does with its items, as far as it knows: an input of automatic plans
/// ([`PlanChoice::Auto`](crate::options::PlanChoice::Auto)). The default is what is assumed if nothing is known.
///
/// The four shares are relative to each other and need not add up to 1.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// use alluvium::{Db, Workload};
///
/// // Exact deduplication: half of the keys asked for are new.
/// let workload = Workload { gets: 0.5, absent_gets: 0.5, puts: 0.5, ..Workload::default() };
/// let db = Db::builder(directory.path()).workload(workload).index_bytes_per_item(2.5).open()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// Share of gets of present keys.
    pub gets: f64,
    /// Share of gets of absent keys.
    pub absent_gets: f64,
    /// Share of writes of new and present keys.
    pub puts: f64,
    /// Share of removals.
    pub removals: f64,
    /// Zipf skew of the popularity of keys, 0 (all alike) to 16. With a skew, making a plan takes seconds.
    pub skew: f64,
    /// Mean bytes of a key. Used until there are items to measure.
    pub key_bytes: f64,
    /// Mean bytes of a value. Used until there are items to measure.
    pub value_bytes: f64,
}

impl Default for Workload {
    /// Half gets of present keys, half puts, all keys alike, items of 16+100 bytes.
    fn default() -> Self {
        Self {
            gets: 0.5,
            absent_gets: 0.0,
            puts: 0.5,
            removals: 0.0,
            skew: 0.0,
            key_bytes: 16.0,
            value_bytes: 100.0,
        }
    }
}

impl Workload {
    /// The default with this share of absent keys among its gets.
    pub(crate) fn of_absent_share(share: f64) -> Self {
        let gets = Self::default().gets;
        Self { gets: gets * (1.0 - share), absent_gets: gets * share, ..Self::default() }
    }

    /// Share of absent keys among gets; 0 without gets.
    pub(crate) fn absent_share(&self) -> f64 {
        if self.absent_gets > 0.0 { self.absent_gets / (self.gets + self.absent_gets) } else { 0.0 }
    }

    /// What a plan for `items` items has to satisfy, with at most `index_bytes_per_item` of memory for each.
    pub(crate) fn demand(
        &self,
        items: u64,
        index_bytes_per_item: Option<f64>,
        device: DeviceFigures,
    ) -> Result<Demand, ModelError> {
        let Self { gets, absent_gets, puts, removals, skew, key_bytes, value_bytes } = *self;
        let item = ItemSize { key_bytes, value_bytes, deviation_bytes: 0.0 };
        let keys = KeyDistribution::zipf(items as f64, skew)?;
        let mix = OperationMix { put: puts, get: gets, miss: absent_gets, delete: removals };
        let mut demand = Demand::new(keys, item, device).with_mix(mix);
        if let Some(bytes) = index_bytes_per_item {
            demand.limits = Limits::of_bytes_per_item(items as f64, bytes);
        }
        Ok(demand)
    }
}
