//! [`LogGrowth`]: whether a keyspace's next log store may grow beyond what the plan says.

use alluvium_io::sync::atomic::{AtomicU32, Ordering};

/// Number of stores that keep to the plan after one that has grown in vain.
const PAUSE: u32 = 15;
/// Share of a grown store's items that its conversion must drop.
const DROPPED_SHARE_MIN: f64 = 0.25;

/// Stops the growth of log stores that gains nothing: where removed items are in tables, or live for longer than the
/// largest log lasts. Then one store in sixteen grows, to see whether that has changed.
#[derive(Debug, Default)]
pub(crate) struct LogGrowth {
    /// Number of stores before growth is tried again.
    pause: AtomicU32,
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
        self.pause.store(if is_worthwhile { 0 } else { PAUSE }, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_in_vain_is_tried_again_after_a_pause() {
        let growth = LogGrowth::default();
        assert!(growth.begin_store());
        growth.end_store(100, 20);
        assert_eq!((0..32).map(|_| growth.begin_store()).position(|may_grow| may_grow), Some(PAUSE as usize));
        growth.end_store(100, 30);
        assert!(growth.begin_store());
    }
}
