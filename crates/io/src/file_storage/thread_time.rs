//! Processor time of this thread, by the C library.
//!
//! `rustix` looks for the kernel's clock at an address that the kernel tells it. Under valgrind nothing is there, and a
//! process that reads it is killed; the C library's clock works. This clock is a system call in either case.

/// Processor time that this thread has used, in nanoseconds.
pub fn cpu_time_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing, and every thread has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
