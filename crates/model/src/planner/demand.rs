//! [`Demand`]: what a plan has to satisfy.

use super::device::DeviceFigures;
use crate::KeyDistribution;
use crate::error::{ModelError, positive, within};
use crate::plan_model::{ItemSize, Rules, Workload};

/// Bytes of memory per item if no budget is given: what the store promises.
const BYTES_PER_ITEM: f64 = 0.5;
/// Minimum budget if none is given: what is promised for a hundred million items. So a database that expects fewer gets
/// no plan that writes more than one that expects none, to save memory of which no machine is short.
const BUDGET_BYTES_MIN: f64 = BYTES_PER_ITEM * 100e6;
/// Minimum of any budget: a log index has a minimum size.
const LOG_INDEX_BYTES_MIN: f64 = 1_048_576.0;

/// Maximum number of keys for which plans are compared: 10¹², the number for which the models are made. The number of
/// plans grows with the levels that the keys fill, and with it time and memory.
const KEYS_PLANNED_MAX: u64 = 1_000_000_000_000;

/// How often each operation is done, relative to the others. The numbers need not add up to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OperationMix {
    /// Puts, of new or present keys.
    pub put: f64,
    /// Gets of present keys.
    pub get: f64,
    /// Gets of absent keys.
    pub miss: f64,
    /// Deletes.
    pub delete: f64,
}

impl Default for OperationMix {
    /// Half puts, half gets of present keys.
    fn default() -> Self {
        Self { put: 0.5, get: 0.5, miss: 0.0, delete: 0.0 }
    }
}

impl OperationMix {
    /// Share of lookups among all operations.
    pub fn lookup_share(&self) -> f64 {
        (self.get + self.miss) / self.sum()
    }

    /// Share of absent keys among lookups; 0 without lookups.
    pub fn miss_share(&self) -> f64 {
        if self.miss > 0.0 { self.miss / (self.get + self.miss) } else { 0.0 }
    }

    /// Share of deletes among writes; 0 without writes.
    pub fn delete_share(&self) -> f64 {
        if self.delete > 0.0 { self.delete / (self.put + self.delete) } else { 0.0 }
    }

    fn sum(&self) -> f64 {
        self.put + self.get + self.miss + self.delete
    }

    fn validate(&self) -> Result<(), ModelError> {
        for (name, share) in
            [("put", self.put), ("get", self.get), ("miss", self.miss), ("delete", self.delete)]
        {
            within(name, share, 0.0, 1e12)?;
        }
        positive("operations", self.sum())?;
        Ok(())
    }
}

/// The maximum that a plan may cost. Infinite for no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Bytes of memory used to find items: log index, filters and indexes.
    pub memory_bytes: f64,
    /// Bytes written to the device for each byte that the user writes.
    pub write_amplification: f64,
    /// Device reads per lookup, present and absent keys in proportion.
    pub reads_per_lookup: f64,
}

impl Limits {
    /// No limits.
    pub const NONE: Self = Self {
        memory_bytes: f64::INFINITY,
        write_amplification: f64::INFINITY,
        reads_per_lookup: f64::INFINITY,
    };

    /// At most this many bytes of memory for each of `keys` keys, and no other limit. Even a few keys may take the
    /// minimum of a log index.
    pub fn of_bytes_per_item(keys: f64, bytes: f64) -> Self {
        Self { memory_bytes: (keys * bytes).max(LOG_INDEX_BYTES_MIN), ..Self::NONE }
    }

    fn validate(&self) -> Result<(), ModelError> {
        within("memory", self.memory_bytes, 0.0, f64::INFINITY)?;
        within("max-write-amplification", self.write_amplification, 0.0, f64::INFINITY)?;
        within("max-reads", self.reads_per_lookup, 0.0, f64::INFINITY)?;
        Ok(())
    }
}

/// The weight of each cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Weight of the device's time for writing. Default 1.
    pub write: f64,
    /// Weight of the device's time for lookups. Default 1.
    pub read: f64,
    /// Microseconds per operation that a byte of memory per item is worth. Default 0: only the budget counts.
    pub memory_us: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self { write: 1.0, read: 1.0, memory_us: 0.0 }
    }
}

impl Weights {
    fn validate(&self) -> Result<(), ModelError> {
        within("write-weight", self.write, 0.0, 1e12)?;
        within("read-weight", self.read, 0.0, 1e12)?;
        within("memory-weight", self.memory_us, 0.0, 1e12)?;
        Ok(())
    }
}

/// What is stored and done, on which device, and within which limits.
///
/// Plans are compared at the number of keys with which the workload ends, with all their filters and indexes in memory:
/// plans that must keep a part of these on the device are not considered.
#[derive(Clone, Debug)]
pub struct Demand {
    /// What is stored and written. Its `delete_share` should be that of the mix.
    pub workload: Workload,
    /// How often each operation is done.
    pub mix: OperationMix,
    /// The limits that may not be exceeded.
    pub limits: Limits,
    /// The weights of the costs within the limits.
    pub weights: Weights,
    /// What the device can do.
    pub device: DeviceFigures,
    /// The bytes that storing costs besides the items.
    pub rules: Rules,
}

/// Number of items for which a plan is made: a hundred million if the expected number is unknown (0), and at
/// most 10¹².
pub fn items_expected(expected_items: u64) -> u64 {
    if expected_items == 0 { 100_000_000 } else { expected_items.min(KEYS_PLANNED_MAX) }
}

impl Demand {
    /// The default mix on `keys` (1 to 10¹²) of this popularity, with at most half a byte of memory per item, or 50 MB
    /// if that is more, under the rules of the engine with writers as fast as it accepts them: the limits then hold at
    /// the worst time, too.
    pub fn new(keys: KeyDistribution, item: ItemSize, device: DeviceFigures) -> Self {
        let memory_bytes = (keys.keys() * BYTES_PER_ITEM).max(BUDGET_BYTES_MIN);
        Self {
            workload: Workload::updates(keys, item),
            mix: OperationMix::default(),
            limits: Limits { memory_bytes, ..Limits::NONE },
            weights: Weights::default(),
            device,
            rules: Rules::engine_at_full_speed(),
        }
    }

    /// Replaces the mix.
    pub fn with_mix(mut self, mix: OperationMix) -> Self {
        self.workload.delete_share = mix.delete_share();
        self.mix = mix;
        self
    }

    pub(super) fn validate(&self) -> Result<(), ModelError> {
        within("keys", self.workload.keys.keys(), 1.0, KEYS_PLANNED_MAX as f64)?;
        self.workload.validate()?;
        self.mix.validate()?;
        self.limits.validate()?;
        self.weights.validate()?;
        self.device.validate()?;
        self.rules.validate()
    }
}
