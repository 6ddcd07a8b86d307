//! Freed blocks, kept per thread for the next read or write.
//!
//! A lookup needs one 4–32 KiB buffer for the time of one read. Getting it from the allocator costs an aligned
//! allocation and a clearing of the page; taking it from here costs a few nanoseconds and no lock. Large blocks are
//! mappings, which fault and are cleared page by page each time they are created: threads that use many in a short time
//! keep some of them with [`KeptBuffers`].

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::ALIGNMENT;
use crate::memory::{MAPPED_BYTES_MIN, Memory};
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of bytes that one thread keeps, over all sizes. Few threads read (one per shard), so this is a small
/// part of the memory budget; [`pooled_bytes`] reports it.
pub const POOL_BYTES_MAX: usize = 512 << 10;

/// Pooled sizes are 4, 8, 16 and 32 KiB: table pages, and two adjacent ones for an item that straddles them.
const CLASSES: usize = 4;

const _: () =
    assert!(MAPPED_BYTES_MIN.is_multiple_of(ALIGNMENT) && MAPPED_BYTES_MIN > ALIGNMENT << (CLASSES - 1));

#[derive(Default)]
struct Pool {
    free: [Vec<Memory>; CLASSES],
    bytes: usize,
    large: Large,
}

/// Blocks of [`MAPPED_BYTES_MIN`] and more.
#[derive(Default)]
struct Large {
    free: Vec<Memory>,
    bytes: usize,
    bytes_max: usize,
}

/// Maximum number of bytes that one thread keeps now.
static POOL_BYTES: AtomicUsize = AtomicUsize::new(POOL_BYTES_MAX);

/// From now on, each thread of the process keeps no more than `bytes` of freed blocks, at most [`POOL_BYTES_MAX`].
/// Blocks that a thread keeps beyond that are freed as they are used. For programs with many threads and little memory;
/// the bound cannot be raised again.
pub fn bound_pooled_bytes(bytes: usize) {
    POOL_BYTES.fetch_min(bytes, Ordering::Relaxed);
}

thread_local! {
    static POOL: RefCell<Pool> = RefCell::default();
}

/// Bytes that the calling thread keeps for reuse, at most [`POOL_BYTES_MAX`].
pub fn pooled_bytes() -> usize {
    POOL.try_with(|pool| pool.borrow().bytes).unwrap_or(0)
}

/// While this lives, the thread that made it keeps the large buffers that it frees, and uses them again.
///
/// Without it, a merge that writes a table in pieces of 1 MiB spends a tenth of its time on page faults of new buffers.
#[derive(Debug)]
pub struct KeptBuffers {
    bytes_max_before: usize,
    /// Belongs to its thread.
    _thread: PhantomData<*const ()>,
}

impl KeptBuffers {
    /// Keeps freed buffers of 64 KiB and more, at most `bytes_max` bytes in all. Nothing counts them while they are
    /// kept: the caller accounts for that memory.
    pub fn in_this_thread(bytes_max: usize) -> Self {
        let set = |pool: &RefCell<Pool>| std::mem::replace(&mut pool.borrow_mut().large.bytes_max, bytes_max);
        Self { bytes_max_before: POOL.try_with(set).unwrap_or(0), _thread: PhantomData }
    }
}

impl Drop for KeptBuffers {
    fn drop(&mut self) {
        // When the thread is being destroyed, the pool is gone, and what it kept with it.
        let _ = POOL.try_with(|pool| {
            let large = &mut pool.borrow_mut().large;
            large.bytes_max = self.bytes_max_before;
            while large.bytes > large.bytes_max
                && let Some(memory) = large.free.pop()
            {
                large.bytes -= memory.capacity();
            }
        });
    }
}

impl Large {
    /// The smallest block that holds `bytes`, unless more than half of it would be unused.
    fn take(&mut self, bytes: usize) -> Option<Memory> {
        let fits = |memory: &Memory| memory.capacity() >= bytes && memory.capacity() / 2 <= bytes;
        let fitting = self.free.iter().enumerate().filter(|(_, memory)| fits(memory));
        let (place, _) = fitting.min_by_key(|(_, memory)| memory.capacity())?;
        let memory = self.free.swap_remove(place);
        self.bytes -= memory.capacity();
        Some(memory)
    }

    fn give(&mut self, memory: Memory) {
        if self.bytes + memory.capacity() <= self.bytes_max {
            self.bytes += memory.capacity();
            self.free.push(memory);
        }
    }
}

/// The class whose blocks hold `bytes`, or `None` if that size is not pooled.
fn class_of(bytes: usize) -> Option<usize> {
    (0..CLASSES).find(|class| bytes <= ALIGNMENT << class).filter(|_| bytes > 0)
}

/// A block of at least `bytes`, with whatever content its last user left. If the pool has none, the error is the
/// capacity to ask the allocator for.
pub(crate) fn take(bytes: usize) -> Result<Memory, usize> {
    let Some(class) = class_of(bytes) else {
        let kept = || POOL.try_with(|pool| pool.borrow_mut().large.take(bytes)).ok().flatten();
        return (bytes >= MAPPED_BYTES_MIN).then(kept).flatten().ok_or(bytes);
    };
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
    if capacity >= MAPPED_BYTES_MIN {
        let _ = POOL.try_with(|pool| pool.borrow_mut().large.give(memory));
        return;
    }
    let Some(class) = class_of(capacity).filter(|class| capacity == ALIGNMENT << class) else { return };
    // When the thread is being destroyed, the pool is gone, and the block is freed with the closure.
    let _ = POOL.try_with(|pool| {
        let pool = &mut *pool.borrow_mut();
        if pool.bytes + capacity <= POOL_BYTES.load(Ordering::Relaxed) {
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
    fn large_blocks_are_kept_while_asked_for() {
        let large = |kibibytes: usize| Memory::zeroed(kibibytes << 10).unwrap();
        let kept = |kibibytes: usize| take(kibibytes << 10).map(|memory| memory.capacity() >> 10);
        give(large(128));
        assert_eq!(kept(128), Err(128 << 10));
        let outer = KeptBuffers::in_this_thread(512 << 10);
        for kibibytes in [128, 256, 128, 64] {
            give(large(kibibytes));
        }
        // The last has no room, 60 takes none of twice its size.
        assert_eq!(kept(60), Err(60 << 10));
        assert_eq!(kept(100), Ok(128));
        assert_eq!(kept(129), Ok(256));
        give(large(256));
        let inner = KeptBuffers::in_this_thread(0);
        give(large(64));
        drop(inner);
        assert_eq!(kept(256), Ok(256));
        assert_eq!(kept(128), Ok(128));
        give(large(64));
        drop(outer);
        assert_eq!(kept(64), Err(64 << 10));
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
