//! [`InheritedPressure`]: the backlog that a change of plan made of what was none, and that writers don't pay for at
//! once.

use alluvium_io::sync::atomic::{AtomicU64, Ordering};

/// Each freeze of the log takes so much of what is excused.
const EXCUSE_OF_FREEZE: f64 = 1.0 / 64.0;

/// How far a keyspace was over the bounds of its plan when it got that plan: what was within those of the plan before.
///
/// Writers are slowed as if just that were the bound, and it comes down with what merges work off and, lest a stream of
/// writes that takes all that merges can do should keep it up for ever, with every freeze of the log. So neither the
/// change nor the end of it is a step.
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

    /// What of the present pressure counts for writers.
    pub fn excuse(&self, pressure: f64) -> f64 {
        let excused = f64::from_bits(self.0.load(Ordering::Relaxed));
        if excused <= 1.0 {
            return pressure;
        }
        let lower = pressure.clamp(1.0, excused);
        // Whoever comes in between has seen about the same pressure.
        self.0.store(lower.to_bits(), Ordering::Relaxed);
        pressure / lower.max(1.0)
    }

    /// Takes the share of one freeze.
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
