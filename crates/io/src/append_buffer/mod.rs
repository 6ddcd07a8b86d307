//! The memory of a log segment: one appender, many readers, no lock.
//!
//! The log's tail is served from here until it is on the device and frozen, so that a get of a fresh item costs no
//! read (SILT §3.1 reads its LogStore from flash; here the newest part is memory).

mod shared_memory;
mod sync;

use std::fmt;
use std::io::Result;
use std::ops::Range;

use shared_memory::SharedMemory;
use sync::{Arc, AtomicUsize, Ordering};

use crate::memory::{HUGE_PAGE_BYTES, MAPPED_BYTES_MIN};

/// What appender and readers share.
///
/// Invariants:
/// 1. `published` never falls and never exceeds the capacity.
/// 2. Bytes below `published` never change again.
/// 3. Bytes from `published` on are touched only by the appender, of which there is one.
struct Segment {
    memory: SharedMemory,
    published: AtomicUsize,
}

/// The readers' side of a log segment in memory: cheap to clone, usable from any thread.
///
/// The capacity is fixed; memory is populated on first touch, in huge pages where the segment is 2 MiB or larger.
#[derive(Clone)]
pub struct AppendBuffer {
    segment: Arc<Segment>,
}

/// The one writer of an [`AppendBuffer`].
pub struct Appender {
    segment: Arc<Segment>,
    /// The value of `published`, which only the methods of this type change.
    len: usize,
}

impl AppendBuffer {
    /// A buffer of `capacity` bytes, rounded up to a multiple of [`crate::ALIGNMENT`], with its appender.
    ///
    /// # Errors
    /// `OutOfMemory` when the system refuses.
    #[allow(clippy::new_ret_no_self, reason = "the two sides are made together or not at all")]
    pub fn new(capacity: usize) -> Result<(Appender, Self)> {
        let memory = SharedMemory::zeroed(capacity)?;
        let segment = Arc::new(Segment { memory, published: AtomicUsize::new(0) });
        Ok((Appender { segment: Arc::clone(&segment), len: 0 }, Self { segment }))
    }

    /// A buffer that already holds `content`, as a recovered segment does; appends continue after it. The capacity is
    /// at least that of the content.
    pub fn from_bytes(capacity: usize, content: &[u8]) -> Result<(Appender, Self)> {
        let (mut appender, buffer) = Self::new(capacity.max(content.len()))?;
        let start = appender.append(content);
        debug_assert_eq!(start, Some(0), "the capacity covers the content");
        Ok((appender, buffer))
    }

    /// Number of bytes that can be read now.
    pub fn published(&self) -> u64 {
        // Acquire, pairs with the Release in `Appender::publish`: a thread that sees the length sees the bytes below
        // it.
        self.segment.published.load(Ordering::Acquire) as u64
    }

    /// Returns the bytes of `range`, or `None` if not all of it is published (or it is not a range). Costs one atomic
    /// load.
    pub fn slice(&self, range: Range<u64>) -> Option<&[u8]> {
        if range.start > range.end || range.end > self.published() {
            return None;
        }
        // Both fit: they are at most `published`, a `usize`.
        let (start, end) = (range.start as usize, range.end as usize);
        // SAFETY: `start <= end <= published <= capacity` (checked above, invariant 1). The Acquire load in
        // `published` orders all writes below it before this read, and invariant 2 says that none follows.
        Some(unsafe { self.segment.memory.slice(start, end) })
    }

    /// All bytes published so far.
    pub fn bytes(&self) -> &[u8] {
        self.slice(0..self.published()).unwrap_or_default()
    }

    /// Bytes that the buffer can hold.
    pub fn capacity(&self) -> u64 {
        self.segment.memory.capacity() as u64
    }

    /// Bytes of memory that the buffer occupies now: the published bytes, in whole units of population.
    pub fn memory_bytes(&self) -> u64 {
        let capacity = self.capacity();
        let unit = match capacity as usize {
            HUGE_PAGE_BYTES.. => HUGE_PAGE_BYTES as u64,
            MAPPED_BYTES_MIN.. => crate::ALIGNMENT as u64,
            // The allocator's zeroed blocks are populated from the start.
            _ => capacity.max(1),
        };
        self.published().next_multiple_of(unit).min(capacity)
    }
}

impl Appender {
    /// Appends `bytes` and publishes them. Returns the offset where they start, or `None`, with nothing done, if they
    /// do not fit. Costs the copy and one atomic store.
    pub fn append(&mut self, bytes: &[u8]) -> Option<u64> {
        let start = self.write(0, bytes)?;
        self.publish(bytes.len());
        Some(start)
    }

    /// Appends several pieces as one: readers see all of them or none. Returns `None`, with nothing published, if they
    /// do not fit together.
    pub fn append_all(&mut self, pieces: &[&[u8]]) -> Option<u64> {
        let mut len = 0;
        for piece in pieces {
            self.write(len, piece)?;
            len += piece.len();
        }
        self.publish(len);
        Some((self.len - len) as u64)
    }

    /// Appends zeros up to `offset`, for example to start the next record in a new page. Returns `false`, with nothing
    /// done, if `offset` is already passed or beyond the capacity.
    pub fn skip_to(&mut self, offset: u64) -> bool {
        const ZEROS: [u8; 4096] = [0; 4096];
        if offset < self.len as u64 || offset > self.capacity() {
            return false;
        }
        let mut left = (offset - self.len as u64) as usize;
        while left > 0 {
            let step = left.min(ZEROS.len());
            // The zeros are written explicitly: an `append_all` that did not fit leaves bytes behind.
            if self.append(&ZEROS[..step]).is_none() {
                return false;
            }
            left -= step;
        }
        true
    }

    /// The offset at which the next bytes will start.
    pub fn position(&self) -> u64 {
        self.len as u64
    }

    /// Bytes that the buffer can hold.
    pub fn capacity(&self) -> u64 {
        self.segment.memory.capacity() as u64
    }

    /// Another reader of the same buffer.
    pub fn reader(&self) -> AppendBuffer {
        AppendBuffer { segment: Arc::clone(&self.segment) }
    }

    /// Copies `bytes` to `ahead` bytes past the published length; returns where the unpublished part starts.
    fn write(&mut self, ahead: usize, bytes: &[u8]) -> Option<u64> {
        let start = self.len.checked_add(ahead)?;
        let end = start.checked_add(bytes.len())?;
        if end > self.segment.memory.capacity() {
            return None;
        }
        // SAFETY: within the capacity (checked above) and at or past `published` (which is `self.len`), where by
        // invariant 3 only this appender goes: `&mut self`, not `Clone`, one per segment. `slice` hands out nothing
        // there, and the Release in `publish` orders this write before any reader's access.
        unsafe { self.segment.memory.write(start, bytes) };
        Some(self.len as u64)
    }

    fn publish(&mut self, more: usize) {
        self.len += more;
        // Release, pairs with the Acquire in `AppendBuffer::published`.
        self.segment.published.store(self.len, Ordering::Release);
    }
}

impl fmt::Debug for AppendBuffer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AppendBuffer")
            .field("published", &self.published())
            .field("capacity", &self.capacity())
            .finish()
    }
}

impl fmt::Debug for Appender {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Appender").field("position", &self.len).field("capacity", &self.capacity()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn appends_like_a_bounded_vector(
            pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..600), 0u8..4), 0..60),
        ) {
            let (mut appender, buffer) = AppendBuffer::new(8192).unwrap();
            let mut model: Vec<u8> = Vec::new();
            for (bytes, how) in pieces {
                let fits = model.len() + bytes.len() <= 8192;
                let start = model.len() as u64;
                match how {
                    0 => {
                        let target = start + bytes.len() as u64;
                        prop_assert_eq!(appender.skip_to(target), fits);
                        if fits { model.resize(target as usize, 0); }
                    }
                    1 => {
                        let (left, right) = bytes.split_at(bytes.len() / 2);
                        prop_assert_eq!(appender.append_all(&[left, right]), fits.then_some(start));
                        if fits { model.extend_from_slice(&bytes); }
                    }
                    _ => {
                        prop_assert_eq!(appender.append(&bytes), fits.then_some(start));
                        if fits { model.extend_from_slice(&bytes); }
                    }
                }
                prop_assert_eq!(buffer.published(), model.len() as u64);
                prop_assert_eq!(buffer.bytes(), &*model);
                prop_assert_eq!(buffer.slice(0..model.len() as u64 + 1), None);
                let middle = start..model.len() as u64;
                prop_assert_eq!(buffer.slice(middle.clone()), Some(&model[start as usize..]));
            }
        }
    }

    #[test]
    fn ranges_that_are_none_are_refused() {
        let (mut appender, buffer) = AppendBuffer::new(10).unwrap();
        appender.append(b"0123456789").unwrap();
        let (backwards, beyond) = (Range { start: 5, end: 4 }, Range { start: u64::MAX, end: u64::MAX });
        assert_eq!(buffer.slice(backwards), None);
        assert_eq!(buffer.slice(beyond), None);
        assert_eq!(buffer.slice(10..10), Some(&[][..]));
        assert!(!appender.skip_to(9));
    }

    #[test]
    fn recovered_content_is_continued() {
        let (mut appender, buffer) = AppendBuffer::from_bytes(4096, b"old").unwrap();
        assert_eq!(appender.append(b"new"), Some(3));
        assert_eq!(buffer.bytes(), b"oldnew");
        assert_eq!(appender.reader().bytes(), b"oldnew");
    }

    #[test]
    fn readers_see_whole_records_while_one_thread_appends() {
        const RECORDS: u64 = if cfg!(miri) { 50 } else { 20_000 };
        let (mut appender, buffer) = AppendBuffer::new((RECORDS * 8) as usize).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let buffer = buffer.clone();
                scope.spawn(move || {
                    let mut seen = 0;
                    while seen < RECORDS {
                        let published = buffer.published();
                        assert_eq!(published % 8, 0);
                        for record in seen..published / 8 {
                            let bytes = buffer.slice(record * 8..record * 8 + 8).unwrap();
                            assert_eq!(bytes, record.to_le_bytes());
                        }
                        seen = published / 8;
                    }
                });
            }
            for record in 0..RECORDS {
                appender.append(&record.to_le_bytes()).unwrap();
            }
        });
        assert!(buffer.memory_bytes() >= RECORDS * 8);
    }
}

/// Run with `RUSTFLAGS="--cfg loom" cargo test -p alluvium-io --lib append_buffer`.
#[cfg(all(test, loom))]
mod model_tests {
    use super::*;

    /// A reader must see a record whole or not at all. With a weaker order, the length could arrive before the bytes,
    /// and the reader would take the zeros of fresh memory for a record.
    #[test]
    fn a_published_record_is_whole() {
        loom::model(|| {
            let (mut appender, buffer) = AppendBuffer::new(8).unwrap();
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    let buffer = buffer.clone();
                    loom::thread::spawn(move || {
                        let published = buffer.published();
                        assert!([0, 2, 5].contains(&published));
                        assert_eq!(
                            buffer.slice(0..published).unwrap(),
                            &[1, 2, 3, 4, 5][..published as usize]
                        );
                    })
                })
                .collect();
            appender.append(&[1, 2]).unwrap();
            appender.append_all(&[&[3], &[4, 5]]).unwrap();
            for reader in readers {
                reader.join().unwrap();
            }
        });
    }

    /// The appender writes ahead of what it has published while a reader holds a slice of what it has.
    #[test]
    fn a_held_slice_does_not_race_with_the_next_append() {
        loom::model(|| {
            let (mut appender, buffer) = AppendBuffer::new(4).unwrap();
            appender.append(&[1]).unwrap();
            let reader = loom::thread::spawn(move || {
                let slice = buffer.slice(0..1).unwrap();
                loom::thread::yield_now();
                assert_eq!(slice, [1]);
                buffer.slice(1..3).is_none_or(|next| next == [2, 3])
            });
            appender.append(&[2, 3]).unwrap();
            assert!(reader.join().unwrap());
        });
    }
}
