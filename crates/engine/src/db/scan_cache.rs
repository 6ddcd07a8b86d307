//! [`ScanCache`]: iterators that wait for the next call of a scan.

use std::collections::VecDeque;

use alluvium_io::sync::Mutex;

use super::scan::Iter;

/// Iterators kept between the calls of [`crate::Keyspace::scan`].
const CACHED_ITERATORS_MAX: usize = 4;

/// Iterators between two calls of [`crate::Keyspace::scan`], by the cursor that continues them.
#[derive(Debug, Default)]
pub(crate) struct ScanCache {
    iterators: Mutex<VecDeque<(u64, Iter)>>,
}

impl ScanCache {
    /// The iterator that continues at `cursor`, if it is still there.
    pub fn take(&self, cursor: u64) -> Option<Iter> {
        let mut iterators = self.iterators.lock().expect("no panic while held");
        let at = iterators.iter().position(|(kept, _)| *kept == cursor && cursor != 0)?;
        iterators.remove(at).map(|(_, iter)| iter)
    }

    /// Keeps an iterator for the call that has this cursor, and lets go of the oldest where there are too many.
    pub fn keep(&self, cursor: u64, iter: Iter) {
        let mut iterators = self.iterators.lock().expect("no panic while held");
        if iterators.len() >= CACHED_ITERATORS_MAX {
            iterators.pop_front();
        }
        iterators.push_back((cursor, iter));
    }

    /// Lets go of all iterators, and so of the versions they hold.
    pub fn clear(&self) {
        self.iterators.lock().expect("no panic while held").clear();
    }
}
