//! [`Figures`]: what a plan costs under a demand, in the figures by which plans are compared.

use super::demand::{Demand, Limits};
use crate::Plan;
use crate::plan_model::Amounts;

/// What a plan costs. Writes, reads and memory are the axes of the frontier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Bytes written to the device for each byte that the user writes.
    pub write_amplification: f64,
    /// Device reads per lookup, present and absent keys in proportion. Without lookups, per get of a present key.
    pub reads_per_lookup: f64,
    /// Bytes of memory per live item used to find items.
    pub bytes_per_item: f64,
    /// Device reads for a get of a present key.
    pub reads_per_get: f64,
    /// Device reads for a get of an absent key.
    pub reads_per_miss: f64,
    /// Device reads that a put waits for.
    pub reads_per_put: f64,
    /// Bytes on the device for each live byte.
    pub space_amplification: f64,
}

impl Figures {
    pub(super) fn new(amounts: &Amounts, demand: &Demand) -> Self {
        let miss = demand.mix.miss_share();
        Self {
            write_amplification: amounts.writes,
            reads_per_lookup: (1.0 - miss) * amounts.reads_per_get + miss * amounts.reads_per_miss,
            bytes_per_item: amounts.memory,
            reads_per_get: amounts.reads_per_get,
            reads_per_miss: amounts.reads_per_miss,
            reads_per_put: amounts.reads_per_put,
            space_amplification: amounts.space,
        }
    }

    /// Writes, reads and memory: less is better in each.
    pub fn axes(&self) -> [f64; 3] {
        [self.bytes_per_item, self.write_amplification, self.reads_per_lookup]
    }

    /// Whether the plan is within all limits. A limit is exceeded only by more than the rounding error of a sum.
    pub fn keeps(&self, limits: &Limits, live_items: f64) -> bool {
        let within = |figure: f64, limit: f64| figure <= limit * (1.0 + 1e-9);
        within(self.bytes_per_item * live_items, limits.memory_bytes)
            && within(self.write_amplification, limits.write_amplification)
            && within(self.reads_per_lookup, limits.reads_per_lookup)
    }

    /// Weighted microseconds of device time per operation of the demand, plus memory at its weight: the planner
    /// minimizes this within the limits. More writes, reads or memory never reduce it.
    pub fn score_us(&self, demand: &Demand) -> f64 {
        let Demand { mix, weights, device, workload, .. } = demand;
        let lookups = mix.lookup_share();
        let written = workload.written_bytes() * self.write_amplification;
        let reads = lookups * self.reads_per_lookup + (1.0 - lookups) * self.reads_per_put;
        1e6 * (1.0 - lookups) * weights.write * written / device.write_bytes_per_s
            + 1e6 * weights.read * reads / device.reads_per_s_max()
            + weights.memory_us * self.bytes_per_item
    }
}

/// A plan with what it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The plan.
    pub plan: Plan,
    /// What it costs under the demand.
    pub figures: Figures,
    /// Whether the engine executes it today.
    pub is_executable: bool,
    /// Memory limit beyond which filters and indexes are read from flash instead; infinite if all of them fit.
    pub memory_limit_bytes: f64,
}

impl Candidate {
    pub(super) fn new(plan: Plan, figures: Figures) -> Self {
        Self { is_executable: plan.is_executable(), plan, figures, memory_limit_bytes: f64::INFINITY }
    }

    /// Whether it is a log whose items are chained.
    pub fn is_chained(&self) -> bool {
        matches!(self.plan, Plan::Chained(_))
    }

    /// Whether it takes less time of the device than another one.
    pub(super) fn is_better(&self, other: &Self, demand: &Demand) -> bool {
        self.figures.score_us(demand) < other.figures.score_us(demand)
    }

    /// Whether it keeps only a part of its filters and indexes in memory.
    pub fn is_degraded(&self) -> bool {
        self.memory_limit_bytes.is_finite()
    }
}
