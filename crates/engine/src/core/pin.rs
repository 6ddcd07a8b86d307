//! [`Pin`]: a version that an iterator uses, with its files and memory.

use std::sync::{Arc, Weak};

use alluvium_base::SegmentId;
use alluvium_io::sync::atomic::{AtomicBool, Ordering};
use alluvium_io::sync::{ArcSwap, Mutex};

use super::keyspace::KeyspaceShared;
use crate::level::Version;

/// A version that an iterator reads from beginning to end.
///
/// It changes in one way only, and only if the iterator allows it: a converted log store is replaced by the run that it
/// became, so that open iterators do not keep log in memory for long. The run may have items that were written after
/// the iterator began, just like the log.
#[derive(Debug)]
pub(crate) struct Pin {
    version: ArcSwap<Version>,
    /// When the iterator began, in milliseconds since 1970.
    pub since_ms: u64,
    follows: AtomicBool,
}

impl Pin {
    pub fn version(&self) -> Arc<Version> {
        self.version.load_full()
    }

    /// Sets whether a log store that is converted from now on may be replaced by its run.
    pub fn set_follows(&self, follows: bool) {
        self.follows.store(follows, Ordering::Release);
    }
}

/// The pins of a keyspace that are still in use.
#[derive(Debug, Default)]
pub(crate) struct Pins(Mutex<Vec<Weak<Pin>>>);

impl Pins {
    /// All that are in use.
    pub fn held(&self) -> Vec<Arc<Pin>> {
        self.0.lock().expect("no panic while held").iter().filter_map(Weak::upgrade).collect()
    }
}

impl KeyspaceShared {
    /// Replaces the log store of a converted segment by its run in all pins that allow it. Called by one conversion at
    /// a time.
    pub fn convert_pinned(&self, segment: SegmentId, change: impl Fn(&Version) -> Version) {
        for pin in self.pins.held().iter().filter(|pin| pin.follows.load(Ordering::Acquire)) {
            let version = pin.version();
            // If an older store is still there, because it was converted between the loading of the version and its
            // pinning, the run would be placed below older items.
            if version.log_stores.last().is_some_and(|oldest| oldest.segment.id == segment) {
                pin.version.store(Arc::new(change(&version)));
            }
        }
    }

    /// Pins a version for an iterator, so that [`crate::IteratorStats`] includes it.
    pub(crate) fn pin(&self, version: Arc<Version>, since_ms: u64) -> Arc<Pin> {
        let (version, follows) = (ArcSwap::new(version), AtomicBool::new(false));
        let pin = Arc::new(Pin { version, since_ms, follows });
        let mut pins = self.pins.0.lock().expect("no panic while held");
        pins.retain(|pin| pin.strong_count() > 0);
        pins.push(Arc::downgrade(&pin));
        pin
    }
}
