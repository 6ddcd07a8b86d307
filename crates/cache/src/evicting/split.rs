//! How logs and compressed zone share the memory: so that most gets that find their item need no decompression, and the
//! zone gets the rest (Wu's thesis, §3.3.3.1).
//!
//! The thesis also counts items that the hot zone evicts as requests of the zone. A set after a miss evicts one however
//! the memory is divided, so that a cache with many misses, to which the zone is most useful, would give it up.

/// Requests and milliseconds after which the shares are looked at.
const REQUESTS_MIN: u64 = 10_000;
const WINDOW_MS: u64 = 1000;

/// A step of the size, in percent of the memory.
const STEP_PERCENT: usize = 3;

/// Percentage points around the target within which nothing changes.
const TOLERANCE_PERCENT: u64 = 1;

/// Bytes by which logs shrink at a time, so that no write waits for many evictions.
const SHRINK_BYTES: usize = 4 << 10;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    /// Bytes that logs and zone have together.
    budget: usize,
    /// Bounds of the bytes of the logs.
    hot_min: usize,
    hot_max: usize,
    /// The requests that the logs should serve, in percent.
    target_percent: u64,
    hot: usize,
    wanted: usize,
    /// Time and numbers of requests when the window began.
    began_ms: u64,
    hot_requests: u64,
    zone_requests: u64,
}

impl Split {
    /// A split of `budget` bytes with `hot` bytes for the logs at first.
    pub fn new(budget: usize, hot_min: usize, hot_max: usize, target_percent: u64) -> Self {
        let hot = (budget * 2 / 5).clamp(hot_min, hot_max);
        Self {
            budget,
            hot_min,
            hot_max,
            target_percent,
            hot,
            wanted: hot,
            began_ms: 0,
            hot_requests: 0,
            zone_requests: 0,
        }
    }

    /// Bytes that logs and zone have together.
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// Bytes of the logs now.
    pub fn hot_bytes(&self) -> usize {
        self.hot
    }

    pub fn set_hot_bytes(&mut self, bytes: usize) {
        self.hot = bytes;
    }

    /// Bytes that the logs should have next, on the way to the wanted size.
    pub fn next_hot_bytes(&self) -> usize {
        if self.wanted < self.hot {
            self.wanted.max(self.hot.saturating_sub(SHRINK_BYTES))
        } else {
            self.wanted
        }
    }

    /// Called once in a while with the gets so far that the logs answered, and those that the zone answered.
    pub fn look(&mut self, now_ms: u64, hot_requests: u64, zone_requests: u64) {
        let hot = hot_requests.saturating_sub(self.hot_requests);
        let zone = zone_requests.saturating_sub(self.zone_requests);
        if now_ms.saturating_sub(self.began_ms) < WINDOW_MS || hot + zone < REQUESTS_MIN {
            return;
        }
        (self.began_ms, self.hot_requests, self.zone_requests) = (now_ms, hot_requests, zone_requests);
        let percent = hot * 100 / (hot + zone);
        let step = self.budget * STEP_PERCENT / 100;
        if percent + TOLERANCE_PERCENT < self.target_percent && self.wanted <= self.hot {
            self.wanted = (self.hot + step).min(self.hot_max);
        } else if percent > self.target_percent + TOLERANCE_PERCENT && self.wanted >= self.hot {
            self.wanted = self.hot.saturating_sub(step).max(self.hot_min);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The logs grow while the zone serves too much, shrink while it serves too little, and finish a step first.
    #[test]
    fn the_split_follows_the_requests() {
        let mut split = Split::new(1_000_000, 100_000, 900_000, 90);
        assert_eq!(split.hot_bytes(), 400_000);
        split.look(500, 20_000, 20_000);
        assert_eq!(split.next_hot_bytes(), 400_000, "the window is not over");
        split.look(1000, 20_000, 20_000);
        assert_eq!(split.next_hot_bytes(), 430_000);
        split.look(2000, 40_000, 40_000);
        assert_eq!(split.next_hot_bytes(), 430_000, "it is still growing");
        split.set_hot_bytes(430_000);
        split.look(3000, 40_000 + 90_000, 40_000 + 10_000);
        assert_eq!(split.next_hot_bytes(), 430_000);
        split.look(4000, 130_000 + 99_000, 50_000 + 1000);
        assert_eq!(split.next_hot_bytes(), 430_000 - SHRINK_BYTES);
        for _ in 0..100 {
            split.set_hot_bytes(split.next_hot_bytes());
        }
        assert_eq!(split.hot_bytes(), 400_000);
        for second in 5..50 {
            split.look(second * 1000, 229_000 + second * 99_000, 51_000);
            for _ in 0..10 {
                split.set_hot_bytes(split.next_hot_bytes());
            }
        }
        assert_eq!(split.hot_bytes(), 100_000);
    }
}
