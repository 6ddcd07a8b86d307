//! A few numbers that say when the items of a section expire: enough to know when rewriting it gives space back.

use alluvium_base::Corruption;

use crate::frame::u64_at;

/// Number of equal parts that the marks delimit.
const PARTS: usize = 8;
/// Bytes of [`ExpiryMarks`] in a directory.
pub(crate) const EXPIRY_BYTES: usize = 8 * (1 + PARTS);
/// Number of expiries at which the sample is thinned out. Half as many still place each mark with an error of some 2 %.
const SAMPLE_MAX: usize = 1024;

/// The time at which the first of a section's expiring items expires, and the times at which one eighth, two eighths,
/// ... all of them have expired. Milliseconds since 1970.
///
/// The first and the last are exact. Those in between are estimates from every n-th item: items arrive in the order of
/// their hashes or slots, which is independent of expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpiryMarks(Option<Box<Times>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    first_ms: u64,
    eighths_ms: [u64; PARTS],
}

impl Times {
    const NEVER: Self = Self { first_ms: u64::MAX, eighths_ms: [u64::MAX; PARTS] };
}

impl From<Times> for ExpiryMarks {
    /// Most sections have no expiring items, and then use no memory for marks.
    fn from(times: Times) -> Self {
        Self((times != Times::NEVER).then(|| Box::new(times)))
    }
}

impl ExpiryMarks {
    /// The marks of a section without expiring items.
    pub const NONE: Self = Self(None);

    fn times(&self) -> &Times {
        self.0.as_deref().unwrap_or(&Times::NEVER)
    }

    /// Whether some item may have expired.
    pub fn any_expired(&self, now_ms: u64) -> bool {
        self.times().first_ms <= now_ms
    }

    /// Share of the expiring items that has expired: at most one eighth too low, apart from the error of the estimate.
    pub fn share_expired(&self, now_ms: u64) -> f64 {
        let passed = self.times().eighths_ms.partition_point(|&mark| mark <= now_ms);
        passed as f64 / PARTS as f64
    }

    /// Appends [`EXPIRY_BYTES`] bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.times().first_ms.to_le_bytes());
        self.times().eighths_ms.iter().for_each(|mark| out.extend_from_slice(&mark.to_le_bytes()));
    }

    /// Reads what [`ExpiryMarks::encode`] wrote. Offsets of corruptions are relative to `bytes`.
    pub fn decode(bytes: &[u8; EXPIRY_BYTES]) -> Result<Self, Corruption> {
        let marks = Times {
            first_ms: u64_at(bytes, 0),
            eighths_ms: std::array::from_fn(|part| u64_at(bytes, 8 * (1 + part))),
        };
        if marks.first_ms <= marks.eighths_ms[0] && marks.eighths_ms.is_sorted() {
            return Ok(marks.into());
        }
        let found = format!("{:?} after {}", marks.eighths_ms, marks.first_ms);
        Err(Corruption::new("directory", 0, "ascending times of expiry", found))
    }
}

/// Gathers expiries while a section is written. Holds at most 8 KiB.
#[derive(Debug)]
pub(super) struct ExpirySample {
    /// Every `step`-th expiry.
    kept: Vec<u64>,
    step: u64,
    count: u64,
    first_ms: u64,
    last_ms: u64,
}

impl Default for ExpirySample {
    fn default() -> Self {
        Self { kept: Vec::new(), step: 1, count: 0, first_ms: u64::MAX, last_ms: 0 }
    }
}

impl ExpirySample {
    #[cold]
    pub fn push(&mut self, expires_at_ms: u64) {
        self.first_ms = self.first_ms.min(expires_at_ms);
        self.last_ms = self.last_ms.max(expires_at_ms);
        if self.count.is_multiple_of(self.step) {
            self.kept.push(expires_at_ms);
        }
        self.count += 1;
        if self.kept.len() == SAMPLE_MAX {
            let mut is_kept = false;
            self.kept.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.step *= 2;
        }
    }

    pub fn finish(mut self) -> ExpiryMarks {
        if self.count == 0 {
            return ExpiryMarks::NONE;
        }
        self.kept.sort_unstable();
        let mark = |part: usize| match part {
            PARTS => self.last_ms,
            // The last of the items of this number of eighths; with few items some marks coincide.
            _ => self.kept[(part * self.kept.len()).div_ceil(PARTS) - 1],
        };
        Times { first_ms: self.first_ms, eighths_ms: std::array::from_fn(|part| mark(part + 1)) }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn marks_of(expiries: &[u64]) -> ExpiryMarks {
        let mut sample = ExpirySample::default();
        expiries.iter().for_each(|&expiry| sample.push(expiry));
        sample.finish()
    }

    proptest! {
        /// Compares with a count. Nothing is thinned out here, so the share is exact to an eighth.
        #[test]
        fn few_expiries_are_counted_to_an_eighth(
            expiries in prop::collection::vec(0u64..100, 1..SAMPLE_MAX - 1),
            now in 0u64..110,
        ) {
            let marks = marks_of(&expiries);
            let expired = expiries.iter().filter(|&&expiry| expiry <= now).count() as f64;
            let share = expired / expiries.len() as f64;
            prop_assert!(marks.share_expired(now) <= share + 1e-9);
            prop_assert!(marks.share_expired(now) > share - 1.0 / PARTS as f64 - 1e-9);
            prop_assert_eq!(marks.any_expired(now), expired > 0.0);
            prop_assert_eq!(marks.share_expired(now) == 1.0, share == 1.0);
            let mut bytes = Vec::new();
            marks.encode(&mut bytes);
            prop_assert_eq!(ExpiryMarks::decode(bytes.as_slice().try_into().unwrap()).unwrap(), marks);
        }

        #[test]
        fn arbitrary_bytes_are_ascending_or_refused(numbers in prop::collection::vec(0u64..4, 1 + PARTS)) {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            let decoded = ExpiryMarks::decode(bytes.as_slice().try_into().unwrap());
            prop_assert_eq!(decoded.is_ok(), numbers.is_sorted());
        }
    }

    #[test]
    fn many_expiries_are_estimated() {
        // Spread without order over 0..1,000,003.
        let expiries: Vec<u64> = (0..300_000u64).map(|number| number * 7_919 % 1_000_003).collect();
        let marks = marks_of(&expiries);
        for moment_ms in (0..1_100_000).step_by(10_000) {
            let expired = expiries.iter().filter(|&&expiry| expiry <= moment_ms).count();
            let share = expired as f64 / expiries.len() as f64;
            let estimate = marks.share_expired(moment_ms);
            assert!(
                (share - 0.16..=share + 0.04).contains(&estimate),
                "{estimate}, not {share}, at {moment_ms}"
            );
        }
        assert_eq!(marks.share_expired(*expiries.iter().max().unwrap()), 1.0);
    }

    #[test]
    fn nothing_asks_for_no_rewriting() {
        assert_eq!(marks_of(&[]), ExpiryMarks::NONE);
        assert!(!ExpiryMarks::NONE.any_expired(u64::MAX - 1));
        assert_eq!(ExpiryMarks::NONE.share_expired(u64::MAX - 1), 0.0);
    }
}
