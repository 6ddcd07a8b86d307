//! [`InheritedPressure`]: the backlog caused by a change of plan. Writers are not slowed for all of it at once.

use alluvium_io::sync::atomic::{AtomicU64, Ordering};

/// Share of the excused pressure that each freeze of the log removes.
const EXCUSE_OF_FREEZE: f64 = 1.0 / 64.0;

/// How far a keyspace exceeded the bounds of its plan when it got that plan, although it was within those of the plan
/// before.
///
/// Writers are slowed as if this pressure were the bound. It decreases as merges reduce the backlog, and with every
/// freeze of the log; otherwise a stream of writes that uses the whole capacity of merges could sustain it forever.
/// Neither the change nor its end is therefore a step.
#[derive(Debug)]
pub(crate) struct InheritedPressure(AtomicU64);

impl Default for InheritedPressure {
    /// Nothing is excused.
    fn default() -> Self {
        Self(AtomicU64::new(1f64.to_bits()))
    }
}

impl InheritedPressure {
    /// Excuses this pressure from now on.
    pub fn set(&self, pressure: f64) {
        self.0.store(pressure.max(1.0).to_bits(), Ordering::Relaxed);
    }

    /// The part of the present pressure that counts for writers.
    pub fn excuse(&self, pressure: f64) -> f64 {
        let excused = f64::from_bits(self.0.load(Ordering::Relaxed));
        if excused <= 1.0 {
            return pressure;
        }
        let lower = pressure.clamp(1.0, excused);
        // A concurrent caller has seen approximately the same pressure.
        self.0.store(lower.to_bits(), Ordering::Relaxed);
        pressure / lower.max(1.0)
    }

    /// Removes the share of one freeze.
    pub fn pay_off(&self) {
        let excused = f64::from_bits(self.0.load(Ordering::Relaxed));
        if excused > 1.0 {
            self.set(1.0 + (excused - 1.0) * (1.0 - EXCUSE_OF_FREEZE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_inherited_is_excused_until_it_is_worked_off() {
        let inherited = InheritedPressure::default();
        assert!((inherited.excuse(3.0) - 3.0).abs() < 1e-12);
        inherited.set(10.0);
        assert!((inherited.excuse(10.0) - 1.0).abs() < 1e-12);
        assert!((inherited.excuse(11.0) - 1.1).abs() < 1e-12);
        assert!((inherited.excuse(5.0) - 1.0).abs() < 1e-12);
        assert!((inherited.excuse(10.0) - 2.0).abs() < 1e-12, "it does not come back");
        for _ in 0..1000 {
            inherited.pay_off();
        }
        assert!(inherited.excuse(5.0) > 4.99);
        assert!((inherited.excuse(0.5) - 0.5).abs() < 1e-12);
        assert!((inherited.excuse(2.0) - 2.0).abs() < 1e-12);
    }
}
