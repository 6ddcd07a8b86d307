//! How much freed memory the C library's allocator keeps.
//!
//! By default, each large block that is freed raises the size from which glibc asks the system for memory, up to 32
//! MiB, and each arena keeps twice that: a database of 7 MiB took 18. Other allocators are not touched.

/// Blocks of this size and more are requested from the system and returned to it when they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_BYTES_MAX: i32 = 64 << 10;

/// Makes the allocator return freed memory instead of keeping it, from now on and in the whole process. Each block of
/// 64 KiB or more costs a system call. Does nothing unless the C library is glibc.
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

/// Returns to the system the memory that the allocator keeps in freed small blocks: whole pages among blocks in use, in
/// the arenas of all threads. Costs some tens of microseconds per mebibyte of heap. Does nothing unless the C library
/// is glibc.
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
