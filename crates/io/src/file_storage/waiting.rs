//! [`Waiting`]: what the threads that read files of a directory do meanwhile.

use super::options::ReadWait;
use crate::sync::atomic::{AtomicU8, Ordering};

/// A [`ReadWait`] that can change while files are open. Threads sleep at first.
#[derive(Debug)]
pub(super) struct Waiting(AtomicU8);

const SLEEP: u8 = 0;
const POLL: u8 = 1;
const ADAPT: u8 = 2;

impl Default for Waiting {
    fn default() -> Self {
        Self(AtomicU8::new(SLEEP))
    }
}

impl Waiting {
    #[inline]
    pub(super) fn get(&self) -> ReadWait {
        match self.0.load(Ordering::Relaxed) {
            POLL => ReadWait::Poll,
            ADAPT => ReadWait::Adapt,
            _ => ReadWait::Sleep,
        }
    }

    pub(super) fn set(&self, wait: ReadWait) {
        let code = match wait {
            ReadWait::Sleep => SLEEP,
            ReadWait::Poll => POLL,
            ReadWait::Adapt => ADAPT,
        };
        self.0.store(code, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_sleep_until_another_way_is_set() {
        let waiting = Waiting::default();
        assert_eq!(waiting.get(), ReadWait::Sleep);
        for wait in [ReadWait::Adapt, ReadWait::Poll, ReadWait::Sleep] {
            waiting.set(wait);
            assert_eq!(waiting.get(), wait);
        }
    }
}
