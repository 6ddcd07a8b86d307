//! [`Standing`]: how far a version exceeds the bounds of its plan, and what is merged next for that.

use std::sync::{Arc, PoisonError, Weak};

use alluvium_io::sync::Mutex;

use crate::level::{Place, Version};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Standing {
    /// How far the version exceeds its bounds, used to slow writers: above 1 they are slowed.
    pub pressure: f64,
    /// The unit or container that exceeds its bound most, if any does.
    pub due: Option<DuePlace>,
}

/// A unit or container that exceeds its bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DuePlace {
    pub place: Place,
    pub pressure: f64,
    /// See [`super::due::Due::collects`].
    pub collects: bool,
}

/// The standing of a keyspace's latest version. Computing it reads the counts of every table, and it is needed hundreds
/// of times a second, even when idle; there are only a few dozen versions a second.
#[derive(Debug, Default)]
pub(crate) struct LatestStanding(Mutex<Option<Known>>);

#[derive(Debug)]
struct Known {
    /// Weak, so that it keeps no table open, and its address is not reused for another version.
    version: Weak<Version>,
    segment_bytes: u64,
    standing: Standing,
}

impl LatestStanding {
    /// The result of `judge` for the version, with log segments of `segment_bytes` bytes. Computed once.
    pub(crate) fn of(
        &self,
        version: &Arc<Version>,
        segment_bytes: u64,
        judge: impl FnOnce() -> Standing,
    ) -> Standing {
        // The value is valid even if a thread panicked while it held the lock.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = |known: &&Known| {
            known.version.as_ptr() == Arc::as_ptr(version) && known.segment_bytes == segment_bytes
        };
        if let Some(known) = known.as_ref().filter(is_known) {
            return known.standing;
        }
        let standing = judge();
        *known = Some(Known { version: Arc::downgrade(version), segment_bytes, standing });
        standing
    }
}
