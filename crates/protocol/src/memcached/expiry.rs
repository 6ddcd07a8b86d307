//! When items expire.

/// The meaning of an expiry time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expiry {
    /// Already.
    Now,
    /// At this moment, in seconds since 1970: the item exists before it and not from it on.
    At(u64),
    /// Never.
    Never,
}

impl Expiry {
    /// Maximum number that counts seconds from now, 30 days; larger ones are moments, in seconds since 1970.
    pub const RELATIVE_S_MAX: i64 = 30 * 24 * 60 * 60;

    /// The meaning of `exptime` in a request that is carried out at `now_s`, in seconds since 1970: 0 is never,
    /// negative is already, up to [`Expiry::RELATIVE_S_MAX`] counts from now, above that is a moment, which may
    /// be past.
    ///
    /// memcached's numbers wrap at 32 bits; these do not, and moments after the year 2038 are right.
    pub fn of(exptime: i64, now_s: u64) -> Self {
        match u64::try_from(exptime) {
            Err(_) => Self::Now,
            Ok(0) => Self::Never,
            Ok(seconds) if exptime <= Self::RELATIVE_S_MAX => Self::At(now_s.saturating_add(seconds)),
            Ok(moment) if moment <= now_s => Self::Now,
            Ok(moment) => Self::At(moment),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_chooses_its_unit() {
        let now_s = 1_800_000_000;
        for (exptime, expiry) in [
            (0, Expiry::Never),
            (-1, Expiry::Now),
            (i64::MIN, Expiry::Now),
            (1, Expiry::At(now_s + 1)),
            (2_592_000, Expiry::At(now_s + 2_592_000)),
            (2_592_001, Expiry::Now),
            (1_799_999_999, Expiry::Now),
            (1_800_000_000, Expiry::Now),
            (1_800_000_001, Expiry::At(1_800_000_001)),
            (5_000_000_000, Expiry::At(5_000_000_000)),
            (i64::MAX, Expiry::At(i64::MAX as u64)),
        ] {
            assert_eq!(Expiry::of(exptime, now_s), expiry, "{exptime}");
        }
        assert_eq!(Expiry::of(10, 100), Expiry::At(110), "a clock that is wrong");
        assert_eq!(Expiry::of(10, u64::MAX), Expiry::At(u64::MAX));
    }

    #[test]
    fn earlier_is_less() {
        assert!(
            Expiry::Now < Expiry::At(0)
                && Expiry::At(1) < Expiry::At(2)
                && Expiry::At(u64::MAX) < Expiry::Never
        );
    }
}
