//! [`Watches`]: the number of keys that clients watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what [`Watches::begin`] has returned and still exists.
#[derive(Clone, Debug, Default)]
pub(super) struct Watches(Arc<AtomicUsize>);

/// A key that is watched until this is dropped.
pub(super) struct EngineWatch {
    pub(super) watch: alluvium::Watch,
    _counted: Counted,
}

pub(super) struct Counted(Arc<AtomicUsize>);

impl Watches {
    pub(super) fn begin(&self) -> Counted {
        self.0.fetch_add(1, Ordering::SeqCst);
        Counted(Arc::clone(&self.0))
    }

    pub(super) fn is_any(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

impl EngineWatch {
    pub(super) fn new(watch: alluvium::Watch, counted: Counted) -> Self {
        Self { watch, _counted: counted }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
