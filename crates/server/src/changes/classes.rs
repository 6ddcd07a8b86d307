//! [`Classes`]: which events are published, as `notify-keyspace-events` says it.

/// Classes of events, and the channels on which they are published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Classes(pub(super) u32);

/// The letters of the classes, in the order in which Redis writes them. Bit 0 is the first one.
const LETTERS: [u8; 14] = *b"g$lshzxetdnKEm";

impl Classes {
    pub(crate) const GENERIC: Self = Self(1);
    pub(crate) const STRING: Self = Self(1 << 1);
    pub(crate) const SET: Self = Self(1 << 3);
    pub(crate) const HASH: Self = Self(1 << 4);
    pub(crate) const EXPIRED: Self = Self(1 << 6);
    pub(crate) const NEW: Self = Self(1 << 10);
    /// On `__keyspace@N__:key`.
    pub(crate) const BY_KEY: Self = Self(1 << 11);
    /// On `__keyevent@N__:event`.
    pub(crate) const BY_EVENT: Self = Self(1 << 12);
    pub(crate) const MISS: Self = Self(1 << 13);
    /// The letter `A`: all classes but new keys and misses.
    const ALL: Self = Self((1 << 10) - 1);

    /// The classes that the letters name; `None` if one names none.
    pub(crate) fn parse(letters: &[u8]) -> Option<Self> {
        letters.iter().try_fold(Self::default(), |classes, letter| {
            if *letter == b'A' {
                return Some(Self(classes.0 | Self::ALL.0));
            }
            let bit = LETTERS.iter().position(|known| known == letter)?;
            Some(Self(classes.0 | 1 << bit))
        })
    }

    /// The letters of the classes. Like Redis 7.0, it leaves `n` out where `A` stands for the others.
    pub(crate) fn text(self) -> String {
        let has_all = self.0 & Self::ALL.0 == Self::ALL.0;
        let left_out = if has_all { Self::ALL.0 | Self::NEW.0 } else { 0 };
        let named = LETTERS.iter().enumerate().filter(|(bit, _)| (self.0 & !left_out) & 1 << bit != 0);
        let all = has_all.then_some('A');
        all.into_iter().chain(named.map(|(_, letter)| char::from(*letter))).collect()
    }

    /// Whether it has some of the other classes.
    #[inline]
    pub(crate) fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_normalized_as_in_redis() {
        for (letters, text) in [
            ("", ""),
            ("KEA", "AKE"),
            ("EK$g", "g$KE"),
            ("g$lshzxetdE", "AE"),
            ("KEx", "xKE"),
            ("nE", "nE"),
            ("Em", "Em"),
            ("AKEmn", "AKEm"),
            ("gl", "gl"),
        ] {
            assert_eq!(Classes::parse(letters.as_bytes()).map(Classes::text).as_deref(), Some(text));
        }
        assert_eq!(Classes::parse(b"KEq"), None);
    }
}
