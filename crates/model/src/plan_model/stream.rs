//! [`WriteStream`]: the primitives for writes, some of which name new keys.

use super::evaluate::PlanModel;
use crate::KeyDistribution;
use crate::root;

use super::workload::GetPopularity;

/// Writes to a store of a given size.
#[derive(Clone, Debug)]
pub(super) struct WriteStream {
    /// Keys in the store and their popularity.
    pub keys: KeyDistribution,
    /// Share of the writes that name new keys.
    pub fresh_share: f64,
}

impl WriteStream {
    /// Different keys among `writes` writes. New keys never repeat.
    pub fn unique(&self, writes: f64) -> f64 {
        (self.fresh_share * writes + self.keys.unique(self.old(writes))).min(self.keys.keys())
    }

    /// Writes that name `unique` different keys.
    pub fn unique_inverse(&self, unique: f64) -> f64 {
        if unique <= 0.0 {
            return 0.0;
        }
        if self.fresh_share == 0.0 {
            return self.keys.unique_inverse(unique);
        }
        root::increasing(unique, |writes| {
            let (fresh, old) = (self.fresh_share * writes, self.old(writes));
            let value = fresh + self.keys.unique(old);
            let slope = if old > 0.0 { fresh + self.keys.unique_slope(old) } else { fresh };
            ((value / unique).ln(), slope / value)
        })
    }

    /// Keys in a table of `size` keys after `writes` writes are merged into it.
    pub fn merge(&self, writes: f64, size: f64) -> f64 {
        let before = self.keys.unique_inverse(size);
        let merged = self.fresh_share * writes + self.keys.unique(before + self.old(writes));
        merged.min(self.keys.keys())
    }

    /// Writes between compactions of one key in a level of `size` keys.
    pub fn dinterval(&self, size: f64) -> f64 {
        if self.fresh_share == 0.0 {
            return self.keys.dinterval(size);
        }
        root::increasing(2.0 * size, |writes| {
            let (fresh, old) = (self.fresh_share * writes / 2.0, self.old(writes));
            let mean_old = self.keys.mean_unique(old);
            let value = fresh + mean_old;
            ((value / size).ln(), (fresh + self.keys.unique(old) - mean_old) / value)
        })
    }

    /// Average share of the gets of present keys that ask for keys of the last 0 to `writes` writes.
    pub fn mean_found(&self, writes: f64, gets: GetPopularity) -> f64 {
        let keys = self.keys.keys();
        let old = self.old(writes);
        let old = match gets {
            GetPopularity::Uniform => self.keys.mean_unique(old) / keys,
            GetPopularity::LikePuts => self.keys.mean_recent_share(old),
        };
        (self.fresh_share * writes / 2.0 / keys + old).min(1.0)
    }

    fn old(&self, writes: f64) -> f64 {
        if self.fresh_share >= 1.0 { 0.0 } else { writes * (1.0 - self.fresh_share) }
    }
}

impl PlanModel {
    /// Share of the gets of present keys that the cache answers.
    pub(super) fn cached_share(&self, stream: &WriteStream) -> f64 {
        match self.workload.gets {
            GetPopularity::Uniform => (self.workload.cached_items / stream.keys.keys()).min(1.0),
            GetPopularity::LikePuts => stream.keys.cache_hit_share(self.workload.cached_items),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn inverses_undo_with_any_share_of_new_keys(
            power in 2.0..9.0f64, skew in 0.0..2.0f64, fresh_share in 0.0..=1.0f64, share in 0.001..0.9f64,
        ) {
            let keys = KeyDistribution::zipf(10f64.powf(power).round(), skew).unwrap();
            let size = share * (keys.keys() - 1.0);
            let stream = WriteStream { keys, fresh_share };
            prop_assert!((stream.unique(stream.unique_inverse(size)) / size - 1.0).abs() < 1e-9);
            let interval = stream.dinterval(size);
            // The exact sum over keys leaves out half a key or less.
            let found = stream.mean_found(interval, GetPopularity::LikePuts);
            let uniform = stream.mean_found(interval, GetPopularity::Uniform);
            prop_assert!((uniform * stream.keys.keys() - size).abs() < 1.0 + 1e-6 * size);
            prop_assert!(found <= 1.0 && uniform <= 1.0 && found >= uniform * (1.0 - 1e-6));
        }
    }
}
