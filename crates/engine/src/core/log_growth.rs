//! [`LogGrowth`]: whether a keyspace's next log store may grow beyond what the plan says.

use alluvium_io::sync::atomic::{AtomicU32, Ordering};

/// Maximum number of stores that keep to the plan after one that has grown in vain. The pauses are 1, 3, 7, then 15.
const PAUSE_MAX: u32 = 15;
/// Share of a grown store's items that its conversion must drop.
const DROPPED_SHARE_MIN: f64 = 0.25;

/// Stops the growth of log stores that gains nothing: where removed items are in tables, or live for longer than the
/// largest log lasts. Then one store in sixteen grows, to see whether that has changed.
#[derive(Debug, Default)]
pub(crate) struct LogGrowth {
    /// Number of stores before growth is tried again.
    pause: AtomicU32,
    /// The length of the last pause, if none of the stores since has gained anything.
    last: AtomicU32,
}

impl LogGrowth {
    /// Whether a store that begins now may grow.
    pub fn begin_store(&self) -> bool {
        let less = |pause: u32| pause.checked_sub(1);
        self.pause.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err()
    }

    /// Notes how many of a grown store's items its conversion dropped.
    pub fn end_store(&self, items: usize, dropped: usize) {
        let is_worthwhile = dropped as f64 >= DROPPED_SHARE_MIN * items as f64;
        let last = self.last.load(Ordering::Relaxed);
        let pause = if is_worthwhile { 0 } else { (2 * last + 1).min(PAUSE_MAX) };
        self.last.store(pause, Ordering::Relaxed);
        self.pause.store(pause, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_in_vain_is_tried_again_after_a_pause() {
        let growth = LogGrowth::default();
        let until_next = || (0..32).position(|_| growth.begin_store());
        assert_eq!(until_next(), Some(0));
        for pause in [1, 3, 7, 15, 15] {
            growth.end_store(100, 20);
            assert_eq!(until_next(), Some(pause));
        }
        growth.end_store(100, 30);
        assert_eq!(until_next(), Some(0));
        growth.end_store(100, 20);
        assert_eq!(until_next(), Some(1));
    }
}
