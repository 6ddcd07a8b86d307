//! [`Pin`]: a version that an iterator holds, and with it files and memory.

use std::sync::{Arc, Weak};

use alluvium_io::sync::Mutex;

use super::keyspace::KeyspaceShared;
use crate::level::Version;

/// A version that an iterator reads from beginning to end.
#[derive(Debug)]
pub(crate) struct Pin {
    pub version: Arc<Version>,
    /// When it began, in milliseconds since 1970.
    pub since_ms: u64,
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
    /// Holds a version for an iterator, so that [`crate::IteratorStats`] tells.
    pub(super) fn pin(&self, version: Arc<Version>, since_ms: u64) -> Arc<Pin> {
        let pin = Arc::new(Pin { version, since_ms });
        let mut pins = self.pins.0.lock().expect("no panic while held");
        pins.retain(|pin| pin.strong_count() > 0);
        pins.push(Arc::downgrade(&pin));
        pin
    }
}
