//! [`Reserve`]: a little disk space kept for the moment when there is no other.

use std::time::Duration;

use alluvium_base::checksum::checksum64;
use alluvium_io::sync::atomic::{AtomicU64, Ordering};
use alluvium_io::sync::{Arc, Mutex};
use alluvium_io::{AlignedBuffer, File, OpenMode, Storage};

use crate::error::{IoContext, Result};

/// The file that takes the space.
const RESERVE: &str = "RESERVE";
/// Written at once.
const PIECE_BYTES: u64 = 64 << 10;
/// Space that is kept at most. What was acknowledged and waits to be written behind fits in it, and some thousand
/// removals; where segments are small, they are the bound.
const BYTES_MAX: u64 = 4 << 20;
const SEGMENTS_MAX: u64 = 6;
/// The pause after a failed attempt of [`Reserve::keep`].
const RETRY_MS: u64 = 2_000;

/// Whether `name` is that of the file that keeps space.
pub(crate) fn is_file_name(name: &str) -> bool {
    name == RESERVE
}

/// Space kept by a file that means nothing: cutting it makes room for the log, for removals, and for the record of the
/// manifest by which something goes that is large.
///
/// The file is not synced: after a power cut it is made again. It stays open, since giving it back must take no
/// descriptor; and it is cut before it is removed, since a file system may keep what a removed name held until it has
/// written its journal.
#[derive(Debug)]
pub(crate) struct Reserve {
    storage: Arc<dyn Storage>,
    bytes: u64,
    /// There while the space is taken.
    file: Mutex<Option<Arc<dyn File>>>,
    /// When [`Reserve::keep`] tries again after a failure, in milliseconds.
    pause_ends_ms: AtomicU64,
}

impl Reserve {
    /// For a database with log segments of this size; nothing is taken yet.
    pub fn new(storage: Arc<dyn Storage>, segment_bytes: u64) -> Self {
        let bytes = (SEGMENTS_MAX * segment_bytes).min(BYTES_MAX).next_multiple_of(PIECE_BYTES);
        Self { storage, bytes, file: Mutex::new(None), pause_ends_ms: AtomicU64::new(0) }
    }

    /// Bytes that are kept.
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
    /// When there is not; then none of it is taken.
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
            // Zeros would take no space where a file system compresses.
            word.copy_from_slice(&checksum64(&number.to_le_bytes(), 0).to_le_bytes());
        }
        for offset in (0..self.bytes).step_by(PIECE_BYTES as usize) {
            file.write_at(&piece, offset).context(context)?;
        }
        Ok(())
    }

    /// Gives the space back to whoever needs it now; `false` when there was none.
    pub fn release(&self) -> bool {
        let mut taken = self.file.lock().expect("no panic while held");
        taken.take().is_some_and(|file| give_back(&*self.storage, &*file))
    }

    /// Gives back what an earlier opening took; `false` when it took none. The caller holds the directory's lock.
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
        // The next opening finds it.
        let next = Reserve::new(Arc::new(storage.clone()), 1 << 10);
        next.take().unwrap();
        let file = storage.open("log", OpenMode::Create).unwrap();
        assert!(file.write_at(&[1; 512], 0).is_err());
        assert!(next.release() && !next.release());
        file.write_at(&[1; 512], 0).unwrap();
        assert!(!Reserve::give_up(&storage));
    }
}
