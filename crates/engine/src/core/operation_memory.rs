//! [`OperationMemory`]: the memory of reads in progress under a memory limit.
//!
//! There are two kinds. *Buffers* are held while a call runs (pages of a `multi_get`, pieces of large values, the reads
//! of an iterator's next chunk): a call that finds no room waits until others are done. *Iterators* keep what they
//! collected until their owner drops them, so waiting could last forever. Instead, each gets less the more there are,
//! and beyond that the call fails with [`Error::MemoryBusy`].

use std::sync::Arc;

use alluvium_io::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::table::{IndexMemory, Loan, WaitingRoom};

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct OperationMemory {
    index: Arc<IndexMemory>,
    /// Held by calls until they return.
    pub buffers: WaitingRoom,
    /// Maximum bytes of all iterators; `u64::MAX` without a limit.
    iterators_max: AtomicU64,
    iterators: AtomicU64,
}

/// Memory held by an iterator as long as this exists. Filters and indexes have that much less.
#[derive(Debug)]
pub(crate) struct IteratorMemory {
    memory: Arc<OperationMemory>,
    bytes: u64,
    _loan: Option<Loan>,
}

impl OperationMemory {
    /// Without bounds.
    pub fn new(index: Arc<IndexMemory>) -> Arc<Self> {
        Arc::new(Self {
            index,
            buffers: WaitingRoom::default(),
            iterators_max: AtomicU64::new(u64::MAX),
            iterators: AtomicU64::new(0),
        })
    }

    /// Changes the bounds. Memory that is held already stays held.
    pub fn set_bytes_max(&self, buffers: u64, iterators: u64) {
        self.buffers.set_bytes_max(buffers);
        self.iterators_max.store(iterators, Ordering::Relaxed);
    }

    /// Bytes held by iterators now.
    pub fn iterator_bytes(&self) -> u64 {
        self.iterators.load(Ordering::Relaxed)
    }

    /// Memory for an iterator that needs at least `least` bytes and works best with `wanted`. The first half of the
    /// total is granted in amounts of at most an eighth; after that, each iterator gets only `least`.
    ///
    /// # Errors
    /// [`Error::MemoryBusy`] if not even `least` bytes are free.
    pub fn hold_iterator(self: &Arc<Self>, wanted: u64, least: u64) -> Result<IteratorMemory> {
        let max = self.iterators_max.load(Ordering::Relaxed);
        let mut granted = wanted;
        let larger = |held: u64| {
            let free = max.saturating_sub(held);
            granted = match (max, free > max / 2) {
                (u64::MAX, _) => wanted,
                (_, true) => wanted.min(max / 8).max(least),
                (_, false) => least,
            };
            // A single one always succeeds.
            (granted <= free || held == 0).then_some(held + granted)
        };
        match self.iterators.fetch_update(Ordering::Relaxed, Ordering::Relaxed, larger) {
            Ok(_) => {
                let loan = (max < u64::MAX).then(|| self.index.lend(granted));
                Ok(IteratorMemory { memory: Arc::clone(self), bytes: granted, _loan: loan })
            }
            Err(held) => Err(Error::MemoryBusy { held, max }),
        }
    }
}

impl IteratorMemory {
    /// The number of bytes that it may hold.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for IteratorMemory {
    fn drop(&mut self) {
        self.memory.iterators.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterators_get_less_the_more_there_are_and_are_refused_in_the_end() {
        let memory = OperationMemory::new(Arc::default());
        assert_eq!(memory.hold_iterator(4_000, 50).unwrap().bytes(), 4_000);
        memory.set_bytes_max(0, 1_000);
        let mut held = vec![memory.hold_iterator(400, 50).unwrap()];
        assert_eq!(held[0].bytes(), 125);
        let refused = loop {
            match memory.hold_iterator(400, 50) {
                Ok(more) => held.push(more),
                Err(refused) => break refused,
            }
        };
        assert!(matches!(refused, Error::MemoryBusy { max: 1_000, held } if held > 950), "{refused}");
        assert!(held.len() > 12 && held.iter().all(|held| held.bytes() >= 50));
        assert!(memory.iterator_bytes() <= 1_000);
        held.pop();
        held.push(memory.hold_iterator(400, 50).unwrap());
        held.clear();
        assert_eq!(memory.iterator_bytes(), 0);
        // A single one works under any bound.
        assert_eq!(memory.hold_iterator(4_000, 2_000).unwrap().bytes(), 2_000);
    }
}
