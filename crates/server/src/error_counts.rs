//! [`ErrorCounts`]: how many error replies were sent, by their codes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of codes that are told apart.
const CODES_MAX: usize = 128;

#[derive(Default)]
pub(crate) struct ErrorCounts {
    counts: Mutex<BTreeMap<String, u64>>,
}

impl ErrorCounts {
    /// Counts an error reply by its first word.
    pub(crate) fn add(&self, text: &str) {
        let code = text.split(' ').next().unwrap_or_default();
        let mut counts = self.counts();
        if let Some(count) = counts.get_mut(code) {
            *count += 1;
        } else if counts.len() < CODES_MAX {
            counts.insert(code.to_owned(), 1);
        }
    }

    pub(crate) fn all(&self) -> BTreeMap<String, u64> {
        self.counts().clone()
    }

    pub(crate) fn clear(&self) {
        self.counts().clear();
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
