//! Room for one value while it is copied out of a log.

use std::cell::Cell;

/// Longest value that is copied to the stack.
const SHORT_BYTES: usize = 128;
/// A thread's buffer is not kept if it grew beyond this.
const KEPT_BYTES_MAX: usize = 1 << 20;

thread_local! {
    // Not a field of `Scratch`, whose drop would then cost something after short values, too.
    static KEPT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A buffer on the stack, and for longer values one that belongs to the thread.
pub(crate) struct Scratch {
    short: [u8; SHORT_BYTES],
    len: usize,
}

impl Scratch {
    #[inline(always)]
    pub fn new() -> Self {
        Self { short: [0; SHORT_BYTES], len: 0 }
    }

    /// Makes it `len` bytes long and lets `copy` write all of them.
    #[inline(always)]
    pub fn fill(&mut self, len: usize, copy: impl FnOnce(&mut [u8])) {
        self.len = len;
        match self.short.get_mut(..len) {
            Some(short) => copy(short),
            None => fill_kept(len, copy),
        }
    }

    /// Calls `take` with the bytes that were written last. Other scratches of the thread that were filled since must
    /// have been taken before.
    #[inline(always)]
    pub fn lend<T>(&self, take: impl FnOnce(&[u8]) -> T) -> T {
        match self.short.get(..self.len) {
            Some(short) => take(short),
            None => lend_kept(self.len, take),
        }
    }
}

#[inline(never)]
fn fill_kept(len: usize, copy: impl FnOnce(&mut [u8])) {
    let mut kept = KEPT.take();
    if kept.len() < len {
        kept.resize(len, 0);
    }
    copy(&mut kept[..len]);
    KEPT.set(kept);
}

#[inline(never)]
fn lend_kept<T>(len: usize, take: impl FnOnce(&[u8]) -> T) -> T {
    // `take` may read the cache again and need a buffer too: it finds none, and makes another.
    let kept = KEPT.take();
    let outcome = take(&kept[..len]);
    if kept.len() <= KEPT_BYTES_MAX {
        KEPT.set(kept);
    }
    outcome
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn values_within_values_have_buffers_of_their_own() {
        for len in [0, SHORT_BYTES, SHORT_BYTES + 1, 5000, KEPT_BYTES_MAX + 1] {
            let mut outer = Scratch::new();
            outer.fill(len, |bytes| bytes.fill(1));
            outer.lend(|outer| {
                let mut inner = Scratch::new();
                inner.fill(len * 2, |bytes| bytes.fill(2));
                inner.lend(|inner| assert_eq!(inner, vec![2; len * 2]));
                assert_eq!(outer, vec![1; len]);
            });
        }
    }
}
