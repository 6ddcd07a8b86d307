//! [`Standing`]: how far a version is over the bounds of its plan, and what of it merges next for that.

use std::sync::{Arc, PoisonError, Weak};

use alluvium_io::sync::Mutex;

use super::due::Place;
use crate::level::Version;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Standing {
    /// How far the version is over its bounds, for the writers: above 1 they are slowed.
    pub pressure: f64,
    /// The place that is furthest over its bound, if one is.
    pub due: Option<DuePlace>,
}

/// A place over its bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DuePlace {
    pub place: Place,
    pub pressure: f64,
    /// See [`super::due::Due::collects`].
    pub collects: bool,
}

/// The standing of a keyspace's latest version. Working it out looks at every table, and it is asked for hundreds of
/// times a second, idle or not; versions are a few dozen a second.
#[derive(Debug, Default)]
pub(crate) struct LatestStanding(Mutex<Option<Known>>);

#[derive(Debug)]
struct Known {
    /// Weak, so that it keeps no table open, while its address is not used for another.
    version: Weak<Version>,
    segment_bytes: u64,
    standing: Standing,
}

impl LatestStanding {
    /// What `judge` says of the version, with log segments of so many bytes: asked for once.
    pub(super) fn of(
        &self,
        version: &Arc<Version>,
        segment_bytes: u64,
        judge: impl FnOnce() -> Standing,
    ) -> Standing {
        // A thread that panicked while it held the lock left what was known before.
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
