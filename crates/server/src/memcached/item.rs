//! Items as memcached clients see them.

use std::num::NonZeroU64;
use std::time::{SystemTime, UNIX_EPOCH};

use alluvium_base::KeyHasher;
use alluvium_protocol::memcached::Expiry;

use super::state::DIGEST;
use crate::store::{Attributes, Change, Found, Kind, Mark};

/// Set in the seed of the CAS identifier of an out-of-date item, above the bits of the client's flags.
const STALE_SEED: u64 = 1 << 32;

/// Seconds since 1970.
pub(super) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The item, if memcached clients see it: a string.
pub(super) fn string(found: Option<Found<'_>>) -> Option<Found<'_>> {
    found.filter(|found| found.kind == Kind::String)
}

/// The CAS identifier of a string: its own, if it has one, or a digest of value and flags. So it needs no memory,
/// and it is read at the same moment as the value. A value that was changed and changed back has its former identifier
/// again, and a client that then replaces it replaces what it has seen.
pub(super) fn cas(found: &Found<'_>) -> u64 {
    cas_of(found.value, found.flags, found.mark)
}

/// The CAS identifier of a string that has these parts.
pub(super) fn cas_of(value: &[u8], flags: u32, mark: Mark) -> u64 {
    let digest = || {
        let seed = u64::from(flags) | if mark.is_stale { STALE_SEED } else { 0 };
        KeyHasher::Xxh3 { seed }.hash(value).low() | DIGEST
    };
    NonZeroU64::new(mark.cas).map_or_else(digest, NonZeroU64::get)
}

/// Whether the item is newer than what had the identifier `wanted`. A digest says nothing about the order: what differs
/// was stored later. Tickets and the identifiers that clients choose ascend.
pub(super) fn is_newer(found: &Found<'_>, wanted: u64) -> bool {
    let cas = cas(found);
    (wanted | cas) & DIGEST != 0 || cas > wanted
}

/// Seconds until the item expires; `None` for never.
pub(super) fn ttl_s(expires_at_ms: Option<u64>, now_s: u64) -> Option<u64> {
    expires_at_ms.map(|at_ms| at_ms.div_ceil(1_000).saturating_sub(now_s))
}

/// When an item that gets the expiry time `exptime` now expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// At once: it is removed.
    Over,
    /// At this time in milliseconds since 1970, or never.
    Until(Option<u64>),
}

impl Lifetime {
    pub(super) fn of(exptime: i64, now_s: u64) -> Self {
        match Expiry::of(exptime, now_s) {
            Expiry::Now => Self::Over,
            Expiry::At(at_s) => Self::Until(Some(at_s.saturating_mul(1_000))),
            Expiry::Never => Self::Until(None),
        }
    }

    pub(super) fn expires_at_ms(self) -> Option<u64> {
        match self {
            Self::Over => Some(0),
            Self::Until(at_ms) => at_ms,
        }
    }

    /// Stores a string that lives as long as this.
    pub(super) fn insert(self, value: Vec<u8>, flags: u32, mark: Mark) -> Change {
        match self {
            Self::Over => Change::Remove,
            Self::Until(expires_at_ms) => {
                Change::InsertMarked(value, Attributes { flags, expires_at_ms }, mark)
            }
        }
    }

    /// Lets an item expire then.
    pub(super) fn expire(self) -> Change {
        match self {
            Self::Over => Change::Remove,
            Self::Until(at_ms) => Change::Expire(at_ms),
        }
    }
}
