//! A check, in debug builds, that only one thread writes at a time.

#[cfg(debug_assertions)]
use crate::sync::{AtomicU32, Ordering};

/// 1 while a writer is active. Costs nothing in release builds.
#[derive(Default)]
pub(super) struct WriterFlag {
    #[cfg(debug_assertions)]
    busy: AtomicU32,
}

/// Held during a write.
pub(super) struct Writing<'a> {
    #[cfg(debug_assertions)]
    flag: &'a WriterFlag,
    #[cfg(not(debug_assertions))]
    flag: std::marker::PhantomData<&'a WriterFlag>,
}

impl WriterFlag {
    /// Marks a write until the result is dropped.
    ///
    /// # Panics
    /// In debug builds when another write is in progress.
    #[inline(always)]
    pub fn enter(&self) -> Writing<'_> {
        #[cfg(debug_assertions)]
        {
            let was_busy = self.busy.swap(1, Ordering::Acquire) != 0;
            assert!(!was_busy, "two writers in one cuckoo table");
            Writing { flag: self }
        }
        #[cfg(not(debug_assertions))]
        Writing { flag: std::marker::PhantomData }
    }
}

impl Drop for Writing<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(debug_assertions)]
        self.flag.busy.store(0, Ordering::Release);
        #[cfg(not(debug_assertions))]
        let _ = self.flag;
    }
}
