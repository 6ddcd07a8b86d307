//! [`Observers`]: whether anybody wants to know what commands do.

use std::sync::atomic::{AtomicU32, Ordering, fence};

use super::classes::Classes;

/// What is observed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Observed(u32);

/// The bits above those of [`Classes`].
const MONITORS: u32 = 1 << 30;
const TRACKING: u32 = 1 << 31;
const CLASSES: u32 = MONITORS - 1;

/// What is observed, in one word that each command loads.
#[derive(Debug, Default)]
pub(crate) struct Observers(AtomicU32);

impl Observers {
    #[inline]
    pub(crate) fn get(&self) -> Observed {
        Observed(self.0.load(Ordering::Relaxed))
    }

    /// Sets which events are published.
    pub(crate) fn set_classes(&self, classes: Classes) {
        let set = |bits| Some(bits & !CLASSES | classes.0);
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, set);
    }

    /// Sets whether there are clients that monitor the server.
    pub(crate) fn set_monitors(&self, are_there: bool) {
        self.set(MONITORS, are_there);
    }

    /// Sets whether there are clients that keep what they read. See [`Observers::is_tracking_after_writes`].
    pub(crate) fn set_tracking(&self, are_there: bool) {
        self.set(TRACKING, are_there);
        fence(Ordering::SeqCst);
    }

    /// Whether there are clients that keep what they read, asked after writes that were not recorded. Either this sees
    /// them, or a client that was just enabled reads what was written: of two threads that write and then read, with a
    /// fence in between, one sees what the other has written.
    pub(crate) fn is_tracking_after_writes(&self) -> bool {
        fence(Ordering::SeqCst);
        self.get().has_tracking()
    }

    fn set(&self, bit: u32, is_set: bool) {
        if is_set {
            self.0.fetch_or(bit, Ordering::SeqCst);
        } else {
            self.0.fetch_and(!bit, Ordering::SeqCst);
        }
    }
}

impl Observed {
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn classes(self) -> Classes {
        Classes(self.0 & CLASSES)
    }

    pub(crate) fn has_monitors(self) -> bool {
        self.0 & MONITORS != 0
    }

    pub(crate) fn has_tracking(self) -> bool {
        self.0 & TRACKING != 0
    }

    /// Whether reads are observed, too.
    #[inline]
    pub(crate) fn includes_reads(self) -> bool {
        self.0 & (MONITORS | Classes::MISS.0) != 0
    }
}
