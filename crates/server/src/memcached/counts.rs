//! What `stats` counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// One of the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    GetHits,
    GetMisses,
    Sets,
    Flushes,
    TouchHits,
    TouchMisses,
    DeleteHits,
    DeleteMisses,
    IncrementHits,
    IncrementMisses,
    DecrementHits,
    DecrementMisses,
    CasHits,
    CasMisses,
    CasDiffers,
}

impl Count {
    const COUNT: usize = Self::CasDiffers as usize + 1;
}

/// Counts of a worker since its last round.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    counts: [u64; Count::COUNT],
    is_any: bool,
}

impl Counts {
    #[inline]
    pub(crate) fn add(&mut self, count: Count) {
        self.counts[count as usize] += 1;
        self.is_any = true;
    }

    /// Adds one to `hit` or `miss`.
    #[inline]
    pub(crate) fn add_hit(&mut self, is_hit: bool, hit: Count, miss: Count) {
        self.add(if is_hit { hit } else { miss });
    }

    /// Moves all counts to `shared`.
    pub(crate) fn move_to(&mut self, shared: &SharedCounts) {
        if std::mem::take(&mut self.is_any) {
            for (count, sum) in self.counts.iter_mut().zip(&shared.0) {
                sum.fetch_add(std::mem::take(count), Ordering::Relaxed);
            }
        }
    }
}

/// Counts of all workers since the start or `stats reset`.
#[derive(Debug, Default)]
pub(crate) struct SharedCounts([AtomicU64; Count::COUNT]);

impl SharedCounts {
    pub(crate) fn get(&self, count: Count) -> u64 {
        self.0[count as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn reset(&self) {
        self.0.iter().for_each(|sum| sum.store(0, Ordering::Relaxed));
    }
}
