//! The most direct ways to read: an io_uring loop, and threads that `pread`. Shares no code with
//! [`crate::FileStorage`], which is judged by it.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use super::{RandomReads, Rate, expect_page};
use crate::AlignedBuffer;
use crate::random::Random;

/// A way to have many reads in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawMethod {
    /// One thread and one io_uring.
    Uring,
    /// As many threads as reads in flight.
    Threads,
}

/// Random reads of the file at `path`, bypassing the page cache where the file system allows it.
///
/// # Errors
/// `Unsupported` for a method that the system lacks.
pub fn measure_raw_reads(path: impl AsRef<Path>, reads: &RandomReads, method: RawMethod) -> Result<Rate> {
    reads.check()?;
    let file = open(path.as_ref())?;
    match method {
        RawMethod::Uring => read_by_ring(&file, reads),
        RawMethod::Threads => read_by_threads(&file, reads),
    }
}

fn open(path: &Path) -> Result<File> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Mode, OFlags};
        let direct = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC, Mode::empty());
        if let Ok(file) = direct {
            return Ok(file.into());
        }
    }
    File::open(path)
}

fn read_by_threads(file: &File, reads: &RandomReads) -> Result<Rate> {
    let start = Instant::now();
    let one_thread = |thread: usize| -> Result<Rate> {
        let mut random = Random::new(reads.seed.wrapping_add(thread as u64));
        let mut rate = Rate::new()?;
        let mut buffer = AlignedBuffer::with_len(reads.page_bytes);
        while rate.elapsed < reads.duration {
            let begun = Instant::now();
            expect_page(file.read_at(&mut buffer, reads.offset(&mut random))?, reads.page_bytes)?;
            let now = Instant::now();
            rate.record(now - begun);
            rate.elapsed = now - start;
        }
        Ok(rate)
    };
    crate::sync::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..reads.in_flight).map(|thread| scope.spawn(move || one_thread(thread))).collect();
        let mut total = Rate::new()?;
        for thread in threads {
            let rate = thread.join().map_err(|_| Error::other("a measuring thread panicked"))??;
            total.elapsed = total.elapsed.max(rate.elapsed);
            total.latency_ns.add(&rate.latency_ns).map_err(Error::other)?;
        }
        Ok(total)
    })
}

#[cfg(not(target_os = "linux"))]
fn read_by_ring(_file: &File, _reads: &RandomReads) -> Result<Rate> {
    Err(ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
fn read_by_ring(file: &File, reads: &RandomReads) -> Result<Rate> {
    use io_uring::{IoUring, opcode, types};
    use std::mem::ManuallyDrop;
    use std::os::fd::AsRawFd;

    let entries = u32::try_from(reads.in_flight).map_err(|_| ErrorKind::InvalidInput)?;
    let mut ring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(entries)
        .or_else(|_| IoUring::new(entries))?;
    let mut random = Random::new(reads.seed);
    let mut rate = Rate::new()?;
    // Freed only on success, when nothing is in flight: after an error the kernel may still be writing there.
    let mut buffers: ManuallyDrop<Vec<AlignedBuffer>> =
        ManuallyDrop::new((0..reads.in_flight).map(|_| AlignedBuffer::with_len(reads.page_bytes)).collect());
    let start = Instant::now();
    let mut starts = vec![start; reads.in_flight];
    let mut idle: Vec<usize> = (0..reads.in_flight).collect();
    let mut in_flight = 0;
    while in_flight > 0 || rate.elapsed < reads.duration {
        if rate.elapsed < reads.duration {
            let now = Instant::now();
            for slot in idle.drain(..) {
                starts[slot] = now;
                let pointer = buffers[slot].as_mut_ptr();
                let read = opcode::Read::new(types::Fd(file.as_raw_fd()), pointer, reads.page_bytes as u32)
                    .offset(reads.offset(&mut random))
                    .build()
                    .user_data(slot as u64);
                // SAFETY: each slot has one read in flight at most, and its buffer is freed only after the loop.
                let pushed = unsafe { ring.submission().push(&read) };
                pushed.map_err(|_| ErrorKind::OutOfMemory)?;
                in_flight += 1;
            }
        }
        match ring.submit_and_wait(1) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        let now = Instant::now();
        rate.elapsed = now - start;
        for completion in ring.completion() {
            let slot = completion.user_data() as usize;
            let got = completion.result();
            if got < 0 {
                return Err(Error::from_raw_os_error(-got));
            }
            expect_page(got as usize, reads.page_bytes)?;
            rate.record(now - starts[slot]);
            idle.push(slot);
            in_flight -= 1;
        }
    }
    drop(ManuallyDrop::into_inner(buffers));
    Ok(rate)
}
