//! Freed blocks of page size, kept per thread for the next read.
//!
//! A lookup needs one 4–32 KiB buffer for the time of one read. Going to the allocator for it costs an aligned
//! allocation and a clearing of the page; taking it from here costs a few nanoseconds and no lock.

use std::cell::RefCell;

use crate::ALIGNMENT;
use crate::memory::Memory;

/// What one thread keeps at most, over all sizes. Threads that read are few (one per shard), so this is small change
/// in the memory budget; [`pooled_bytes`] reports it.
pub const POOL_BYTES_MAX: usize = 512 << 10;

/// Pooled sizes are 4, 8, 16 and 32 KiB: table pages, and two adjacent ones for an item that straddles them.
const CLASSES: usize = 4;

#[derive(Default)]
struct Pool {
    free: [Vec<Memory>; CLASSES],
    bytes: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = RefCell::default();
}

/// Bytes that the calling thread keeps for reuse, at most [`POOL_BYTES_MAX`].
pub fn pooled_bytes() -> usize {
    POOL.try_with(|pool| pool.borrow().bytes).unwrap_or(0)
}

/// The class whose blocks hold `bytes`, or `None` when that size is not pooled.
fn class_of(bytes: usize) -> Option<usize> {
    (0..CLASSES).find(|class| bytes <= ALIGNMENT << class).filter(|_| bytes > 0)
}

/// A block of at least `bytes`, with whatever content its last user left. The capacity to ask the allocator for when
/// the pool has none is in the error.
pub(crate) fn take(bytes: usize) -> Result<Memory, usize> {
    let Some(class) = class_of(bytes) else { return Err(bytes) };
    POOL.try_with(|pool| {
        let pool = &mut *pool.borrow_mut();
        let memory = pool.free[class].pop()?;
        pool.bytes -= memory.capacity();
        Some(memory)
    })
    .ok()
    .flatten()
    .ok_or(ALIGNMENT << class)
}

/// Keeps `memory` for the next [`take`] on this thread, or frees it when it has no pooled size or the pool is full.
pub(crate) fn give(memory: Memory) {
    let capacity = memory.capacity();
    let Some(class) = class_of(capacity).filter(|class| capacity == ALIGNMENT << class) else { return };
    // During the destruction of the thread the pool is gone, and the block is freed with the closure.
    let _ = POOL.try_with(|pool| {
        let pool = &mut *pool.borrow_mut();
        if pool.bytes + capacity <= POOL_BYTES_MAX {
            pool.bytes += capacity;
            pool.free[class].push(memory);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_block_is_taken_again() {
        let memory = Memory::zeroed(8192).unwrap();
        let pointer = memory.pointer();
        give(memory);
        assert_eq!(pooled_bytes(), 8192);
        assert_eq!(take(4097).unwrap().pointer(), pointer);
        assert_eq!(pooled_bytes(), 0);
        assert_eq!(take(4097).unwrap_err(), 8192);
    }

    #[test]
    fn odd_sizes_are_not_pooled_and_the_pool_is_bounded() {
        give(Memory::zeroed(12 << 10).unwrap());
        give(Memory::zeroed(64 << 10).unwrap());
        give(Memory::empty());
        assert_eq!(pooled_bytes(), 0);
        for _ in 0..POOL_BYTES_MAX / ALIGNMENT + 10 {
            give(Memory::zeroed(ALIGNMENT).unwrap());
        }
        assert_eq!(pooled_bytes(), POOL_BYTES_MAX);
    }
}
