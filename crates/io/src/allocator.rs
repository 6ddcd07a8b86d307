//! What the C library's allocator keeps of freed memory.
//!
//! Left alone, glibc raises the size from which it asks the system for memory with every large block that is freed, up
//! to 32 MiB, and keeps twice that in each of its arenas: a database of 7 MiB took 18. No other allocator is touched.

/// Blocks of this size and more come from the system and go back to it when they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_BYTES_MAX: i32 = 64 << 10;

/// Makes the allocator give back freed memory instead of keeping it, from now on and for the whole process. Costs a
/// call of the system for every block of 64 KiB and more. Does nothing where the C library is not glibc.
pub fn give_back_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: `mallopt` takes its own lock and only changes thresholds; any thread may call it at any time.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT_BYTES_MAX);
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES_MAX);
        }
    }
}

/// Gives back to the system what the allocator keeps of freed memory in small blocks: whole pages among blocks that are
/// in use, in the arenas of all threads. Costs some tens of microseconds a mebibyte of heap. Does nothing where the C
/// library is not glibc.
pub fn trim_freed_memory() {
    if crate::sync::is_simulated() {
        return; // costs time and changes nothing that a simulation could see
    }
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: `malloc_trim` locks one arena after the other and touches free blocks only; any thread may call it.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}
