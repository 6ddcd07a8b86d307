//! [`Reserve`]: a little disk space that is kept for the moment when there is no other.

use std::time::Duration;

use alluvium_base::checksum::checksum64;
use alluvium_io::sync::atomic::{AtomicU64, Ordering};
use alluvium_io::sync::{Arc, Mutex};
use alluvium_io::{AlignedBuffer, File, OpenMode, Storage};

use crate::error::{IoContext, Result};
use crate::file_names::RESERVE;

/// Number of bytes written at a time.
const PIECE_BYTES: u64 = 64 << 10;
/// Maximum bytes of reserved space. It has room for acknowledged writes that are not yet written behind, and for some
/// thousand removals. With small segments, the bound is `SEGMENTS_MAX` segments.
const BYTES_MAX: u64 = 4 << 20;
const SEGMENTS_MAX: u64 = 6;
/// The pause after a failed attempt of [`Reserve::keep`].
const RETRY_MS: u64 = 2_000;

/// Space reserved by a file of meaningless content. Truncating the file makes room for the log, for removals, and for
/// the manifest record by which something large is removed.
///
/// The file is not synced: after a power cut it is made again. It stays open, since releasing it must not need a
/// descriptor. It is truncated before it is removed, since a file system may keep the space of a removed name until it
/// has written its journal.
#[derive(Debug)]
pub(crate) struct Reserve {
    storage: Arc<dyn Storage>,
    bytes: u64,
    /// Present while the space is reserved.
    file: Mutex<Option<Arc<dyn File>>>,
    /// When [`Reserve::keep`] tries again after a failure, in milliseconds.
    pause_ends_ms: AtomicU64,
}

impl Reserve {
    /// A reserve for a database with log segments of this size. Nothing is reserved yet.
    pub fn new(storage: Arc<dyn Storage>, segment_bytes: u64) -> Self {
        let bytes = (SEGMENTS_MAX * segment_bytes).min(BYTES_MAX).next_multiple_of(PIECE_BYTES);
        Self { storage, bytes, file: Mutex::new(None), pause_ends_ms: AtomicU64::new(0) }
    }

    /// Number of bytes to reserve.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the space is taken.
    pub fn is_taken(&self) -> bool {
        self.file.lock().expect("no panic while held").is_some()
    }

    /// Takes the space at `now`, on the monotonic clock, unless an attempt failed in the last two seconds.
    pub fn keep(&self, now: Duration) {
        let pause_ends_ms = self.pause_ends_ms.load(Ordering::Relaxed);
        let now_ms = now.as_millis() as u64;
        if now_ms >= pause_ends_ms && self.take().is_err() {
            self.pause_ends_ms.store(now_ms + RETRY_MS, Ordering::Relaxed);
        }
    }

    /// Takes the space, if it is not taken: so there is that much room.
    ///
    /// # Errors
    /// If there is not enough room; then none of it is reserved.
    pub fn take(&self) -> Result<()> {
        let mut taken = self.file.lock().expect("no panic while held");
        if taken.is_none() {
            let file = open(&*self.storage)?;
            if let Err(error) = self.fill(&*file) {
                give_back(&*self.storage, &*file);
                return Err(error);
            }
            *taken = Some(file);
        }
        Ok(())
    }

    fn fill(&self, file: &dyn File) -> Result<()> {
        let context = || "reserving space".to_owned();
        let missing = self.bytes.saturating_sub(file.allocated_bytes().context(context)?);
        if missing == 0 {
            return Ok(());
        }
        // Attempts are many, and one that fills the disk would disturb others.
        file.check_available(0, missing).context(context)?;
        let mut piece = AlignedBuffer::zeroed(PIECE_BYTES as usize);
        for (number, word) in piece.chunks_exact_mut(8).enumerate() {
            // A file system with compression would store zeros without using space.
            word.copy_from_slice(&checksum64(&number.to_le_bytes(), 0).to_le_bytes());
        }
        for offset in (0..self.bytes).step_by(PIECE_BYTES as usize) {
            file.write_at(&piece, offset).context(context)?;
        }
        Ok(())
    }

    /// Releases the space for other uses; returns `false` if none was reserved.
    pub fn release(&self) -> bool {
        let mut taken = self.file.lock().expect("no panic while held");
        taken.take().is_some_and(|file| give_back(&*self.storage, &*file))
    }

    /// Releases what an earlier opening reserved; returns `false` if it reserved none. The caller holds the directory's
    /// lock.
    pub fn give_up(storage: &dyn Storage) -> bool {
        storage.open(RESERVE, OpenMode::Write).is_ok_and(|file| give_back(storage, &*file))
    }
}

/// Opens the file of an earlier opening, or creates it.
fn open(storage: &dyn Storage) -> Result<Arc<dyn File>> {
    let context = || "reserving space".to_owned();
    let is_there = storage.list().context(context)?.iter().any(|name| name == RESERVE);
    let mode = if is_there { OpenMode::Write } else { OpenMode::Create };
    storage.open(RESERVE, mode).context(context)
}

fn give_back(storage: &dyn Storage, file: &dyn File) -> bool {
    let is_cut = file.set_len(0).is_ok();
    storage.remove(RESERVE).is_ok() || is_cut
}

#[cfg(test)]
mod tests {
    use alluvium_io::SimulatedStorage;

    use super::*;

    #[test]
    fn a_full_disk_is_not_written_to_again_and_again() {
        let storage = SimulatedStorage::new(1);
        let reserve = Reserve::new(Arc::new(storage.clone()), 1 << 10);
        storage.set_quota(Some(PIECE_BYTES - 1));
        reserve.keep(Duration::ZERO);
        let operations = storage.operation_count();
        reserve.keep(Duration::from_millis(RETRY_MS - 1));
        assert_eq!(storage.operation_count(), operations);
        reserve.keep(Duration::from_millis(RETRY_MS));
        assert!(storage.operation_count() > operations);
        assert!(!reserve.is_taken());
        storage.set_quota(Some(PIECE_BYTES));
        reserve.keep(Duration::from_millis(2 * RETRY_MS));
        assert!(reserve.release());
    }

    #[test]
    fn the_space_is_taken_whole_or_not_at_all() {
        let storage = SimulatedStorage::new(1);
        let reserve = Reserve::new(Arc::new(storage.clone()), 1 << 10);
        storage.set_quota(Some(PIECE_BYTES - 1));
        assert!(reserve.take().is_err());
        assert!(storage.list().unwrap().is_empty() && !reserve.release());
        storage.set_quota(Some(PIECE_BYTES));
        reserve.take().unwrap();
        assert_eq!(storage.list().unwrap(), [RESERVE]);
        // The next opening finds the space.
        let next = Reserve::new(Arc::new(storage.clone()), 1 << 10);
        next.take().unwrap();
        let file = storage.open("log", OpenMode::Create).unwrap();
        assert!(file.write_at(&[1; 512], 0).is_err());
        assert!(next.release() && !next.release());
        file.write_at(&[1; 512], 0).unwrap();
        assert!(!Reserve::give_up(&storage));
    }
}
