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

/// Open files that are read as one: each begins where the one before it ends.
#[derive(Debug)]
pub struct RawFiles(Vec<(File, u64)>);

impl RawFiles {
    /// Opens the files at `paths`, bypassing the page cache where the file system allows it.
    ///
    /// # Errors
    /// The system's error if a file cannot be opened.
    pub fn open(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self> {
        let opened = |path: &Path| {
            let file = open(path)?;
            let bytes = file.metadata()?.len();
            Ok((file, bytes))
        };
        paths.into_iter().map(|path| opened(path.as_ref())).collect::<Result<_>>().map(Self)
    }

    /// Bytes of all files together.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// The pages of files: those that are within one file, in the order of the files.
struct Pages<'a> {
    files: &'a [(File, u64)],
    page_bytes: u64,
    /// For each file, the number of pages up to its end.
    ends: Vec<u64>,
    /// Number of pages from which to read.
    count: u64,
}

impl<'a> Pages<'a> {
    fn new(files: &'a RawFiles, reads: &RandomReads) -> Result<Self> {
        reads.check()?;
        let page_bytes = reads.page_bytes as u64;
        let mut end = 0;
        let mut end_of = |&(_, bytes): &(File, u64)| {
            end += bytes / page_bytes;
            end
        };
        let ends: Vec<u64> = files.0.iter().map(&mut end_of).collect();
        let count = end.min(reads.pages());
        if count == 0 {
            return Err(Error::new(ErrorKind::InvalidInput, "the files have no page to read"));
        }
        Ok(Self { files: &files.0, page_bytes, ends, count })
    }

    /// A page at random: its file, and its offset there.
    fn pick(&self, random: &mut Random) -> (&'a File, u64) {
        let page = random.below(self.count);
        let number = self.ends.partition_point(|&end| end <= page);
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        (&self.files[number].0, (page - start) * self.page_bytes)
    }
}

/// Random reads of the first bytes of `files`, as many as `reads` says.
///
/// # Errors
/// `Unsupported` for a method that the system lacks, `InvalidInput` if the files have no page, and the system's errors.
pub fn measure_raw_reads(files: &RawFiles, reads: &RandomReads, method: RawMethod) -> Result<Rate> {
    let pages = Pages::new(files, reads)?;
    match method {
        RawMethod::Uring => read_by_ring(&pages, reads),
        RawMethod::Threads => read_by_threads(&pages, reads),
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

fn read_by_threads(pages: &Pages<'_>, reads: &RandomReads) -> Result<Rate> {
    let start = Instant::now();
    let one_thread = |thread: usize| -> Result<Rate> {
        let mut random = Random::new(reads.seed.wrapping_add(thread as u64));
        let mut rate = Rate::new()?;
        let mut buffer = AlignedBuffer::with_len(reads.page_bytes);
        while rate.elapsed < reads.duration {
            let begun = Instant::now();
            let (file, offset) = pages.pick(&mut random);
            expect_page(file.read_at(&mut buffer, offset)?, reads.page_bytes)?;
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
fn read_by_ring(_pages: &Pages<'_>, _reads: &RandomReads) -> Result<Rate> {
    Err(ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
fn read_by_ring(pages: &Pages<'_>, reads: &RandomReads) -> Result<Rate> {
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
                let (file, offset) = pages.pick(&mut random);
                let read = opcode::Read::new(types::Fd(file.as_raw_fd()), pointer, reads.page_bytes as u32)
                    .offset(offset)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Each page of each file is picked, and nothing beyond the last whole page of a file.
    #[test]
    fn files_are_read_as_one() {
        let directory = tempfile::tempdir().unwrap();
        let lens = [4096 * 2, 100, 4096 * 3 + 1];
        let paths: Vec<_> = (0..lens.len()).map(|number| directory.path().join(number.to_string())).collect();
        for (path, len) in paths.iter().zip(lens) {
            std::fs::write(path, vec![0; len]).unwrap();
        }
        let files = RawFiles::open(&paths).unwrap();
        assert_eq!(files.bytes(), lens.iter().sum::<usize>() as u64);
        let reads = RandomReads::new(2, files.bytes(), Duration::from_millis(5));
        let pages = Pages::new(&files, &reads).unwrap();
        let mut random = Random::new(1);
        let mut picked = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            let (file, offset) = pages.pick(&mut random);
            picked.insert((files.0.iter().position(|(other, _)| std::ptr::eq(other, file)).unwrap(), offset));
        }
        assert_eq!(picked.into_iter().collect::<Vec<_>>(), [(0, 0), (0, 4096), (2, 0), (2, 4096), (2, 8192)]);
        assert!(measure_raw_reads(&files, &reads, RawMethod::Threads).unwrap().operations() > 0);
        let none = RawFiles::open(&paths[1..2]).unwrap();
        assert!(measure_raw_reads(&none, &reads, RawMethod::Threads).is_err());
    }
}
