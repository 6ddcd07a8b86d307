//! Items that readers beside the writer found and that LRU should move: a sample, which the writer processes.
//!
//! MICA counts only the reads of the writing core, which are a sample of all since its clients alternate between the
//! cores (Lim's thesis, §5.3.1). Here any thread's read may leave a note in a slot chosen by its hash, if that slot is
//! empty; so the first reads after the writer's round are noted and all others cost one load.

use alluvium_base::KeyHash;

use crate::sync::{AtomicU32, AtomicU64, Ordering};

const SLOTS: usize = 64;
/// Writes between two rounds of the writer.
const WRITES_PER_ROUND: u32 = 16;

#[derive(Debug)]
pub(super) struct Promotions {
    /// Low halves of hashes; 0 for an empty slot.
    slots: [AtomicU64; SLOTS],
    writes: AtomicU32,
}

impl Default for Promotions {
    fn default() -> Self {
        Self { slots: std::array::from_fn(|_| AtomicU64::new(0)), writes: AtomicU32::new(0) }
    }
}

impl Promotions {
    /// Notes a read.
    #[inline(always)]
    pub fn note(&self, hash: KeyHash) {
        let slot = &self.slots[(hash.low() >> 20) as usize % SLOTS];
        if slot.load(Ordering::Relaxed) == 0 {
            slot.store(hash.low(), Ordering::Relaxed);
        }
    }

    /// Writer: calls `promote` for each noted read, when a round is due.
    #[inline(always)]
    pub fn work_off(&self, mut promote: impl FnMut(KeyHash)) {
        let writes = self.writes.load(Ordering::Relaxed) + 1;
        if writes < WRITES_PER_ROUND {
            self.writes.store(writes, Ordering::Relaxed);
            return;
        }
        self.writes.store(0, Ordering::Relaxed);
        for slot in &self.slots {
            let low = slot.load(Ordering::Relaxed);
            if low != 0 {
                slot.store(0, Ordering::Relaxed);
                promote(KeyHash::from_halves(0, low));
            }
        }
    }
}
