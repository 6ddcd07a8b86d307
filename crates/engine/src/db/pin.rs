//! [`Pin`]: a version that an iterator holds, and with it files and memory.

use std::sync::{Arc, Weak};

use alluvium_io::sync::atomic::{AtomicBool, Ordering};
use alluvium_io::sync::{ArcSwap, Mutex};

use super::keyspace::KeyspaceShared;
use crate::level::Version;

/// A version that an iterator reads from beginning to end.
///
/// It changes in one way only, and where the iterator bears that: log that was converted gives way to the run that it
/// became, so that open iterators hold no log in memory for long. The run may have items that came after the iterator
/// began, as the log itself.
#[derive(Debug)]
pub(crate) struct Pin {
    version: ArcSwap<Version>,
    /// When it began, in milliseconds since 1970.
    pub since_ms: u64,
    follows: AtomicBool,
}

impl Pin {
    pub fn version(&self) -> Arc<Version> {
        self.version.load_full()
    }

    /// Says whether log that is converted from now on may give way to its run.
    pub fn set_follows(&self, follows: bool) {
        self.follows.store(follows, Ordering::Release);
    }
}

/// The pins of a keyspace that are still held.
#[derive(Debug, Default)]
pub(crate) struct Pins(Mutex<Vec<Weak<Pin>>>);

impl Pins {
    /// All that are held.
    pub fn held(&self) -> Vec<Arc<Pin>> {
        self.0.lock().expect("no panic while held").iter().filter_map(Weak::upgrade).collect()
    }
}

impl KeyspaceShared {
    /// Lets the pins that follow have a converted segment's run in place of its log store. One conversion calls it at a
    /// time.
    pub fn convert_pinned(&self, segment: u64, change: impl Fn(&Version) -> Version) {
        for pin in self.pins.held().iter().filter(|pin| pin.follows.load(Ordering::Acquire)) {
            let version = pin.version();
            // Where an older store is left, because its conversion fell between a load of the version and its pin, the
            // run would come to lie below older items.
            if version.log_stores.last().is_some_and(|oldest| oldest.segment.id == segment) {
                pin.version.store(Arc::new(change(&version)));
            }
        }
    }

    /// Holds a version for an iterator, so that [`crate::IteratorStats`] tells.
    pub(super) fn pin(&self, version: Arc<Version>, since_ms: u64) -> Arc<Pin> {
        let (version, follows) = (ArcSwap::new(version), AtomicBool::new(false));
        let pin = Arc::new(Pin { version, since_ms, follows });
        let mut pins = self.pins.0.lock().expect("no panic while held");
        pins.retain(|pin| pin.strong_count() > 0);
        pins.push(Arc::downgrade(&pin));
        pin
    }
}
