//! How long an item stays in the hot zone without being used: the benchmark for items of the compressed zone that are
//! used again (Wu's thesis, §3.3.3.2).
//!
//! The thesis writes marker items and waits for their eviction. Here positions of the main log's tail are remembered
//! with their times: when the head reaches one, an item that was written then would be evicted. This costs no item, and
//! measures the main log, to which items come back; a marker would measure the time on probation.

use crate::region::{CircularLog, Position};

/// Marks in the time in which the log comes round.
const MARKS: u64 = 16;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Locality {
    /// The tail when it was looked at last, and the words appended until then.
    tail: u64,
    appended: u64,
    /// Words appended at a time in milliseconds, oldest first.
    marks: std::collections::VecDeque<(u64, u64)>,
    /// The last benchmarks, the latest first.
    last: [u64; 3],
}

impl Locality {
    /// Looks at the log; returns a new benchmark in milliseconds, if there is one. Call it at least once in the time in
    /// which the log comes round.
    pub fn look(&mut self, log: &CircularLog, now_ms: u64) -> Option<u64> {
        let tail = log.tail();
        self.appended += log.layout().distance(Position(self.tail), tail);
        self.tail = tail.0;
        let step = log.limit() / MARKS;
        if self.marks.back().is_none_or(|&(appended, _)| self.appended - appended >= step)
            && self.marks.len() <= 4 * MARKS as usize
        {
            self.marks.push_back((self.appended, now_ms));
        }
        let evicted = self.appended - log.used().min(self.appended);
        let mut latest = None;
        while let Some(&(appended, then_ms)) = self.marks.front()
            && appended < evicted
        {
            self.marks.pop_front();
            latest = Some(now_ms - then_ms);
        }
        let latest = latest?;
        let [before, first, _] = self.last;
        let known = |benchmark: u64, or: u64| if benchmark == 0 { or } else { benchmark };
        let before = known(before, latest);
        self.last = [latest, before, known(first, before)];
        Some((2 * self.last[0] + self.last[1] + self.last[2]).div_ceil(4).max(1))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A log that is filled at an even rate keeps each item for as long as its memory takes to fill.
    #[test]
    fn the_benchmark_is_the_time_that_an_item_stays() {
        let log = CircularLog::new(1 << 16, 4096, 47, false).unwrap();
        let mut locality = Locality::default();
        let mut latest = None;
        for step in 0..5000_u64 {
            while log.free() < 16 {
                log.advance_head(16);
            }
            log.reserve(16);
            latest = locality.look(&log, step * 10).or(latest);
        }
        // 8,192 words of 16 a step, 10 ms each.
        assert!(latest.unwrap().abs_diff(5120) < 400, "{latest:?}");
    }
}
