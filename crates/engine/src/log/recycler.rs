//! [`Recycler`]: files of the log that are not in use, and the names of new ones.

use std::sync::Arc;

use alluvium_base::SegmentId;
use alluvium_io::sync::Mutex;
use alluvium_io::sync::atomic::{AtomicU64, Ordering};
use alluvium_io::{AlignedBuffer, File};

use super::header::SegmentHeader;
use super::segment::{BLOCK, Segment};
use crate::error::{IoContext, Result};
use crate::failure::lacks_space;

/// Bytes behind the content that a trimmed file keeps, and how many more make trimming worth its cost: more than what
/// is prepared, so that a slow writer does not have the same space prepared again and again.
pub(super) const SPACE_KEPT_BYTES: u64 = 256 << 10;
pub(super) const SPACE_TRIMMED_BYTES_MIN: u64 = 4 << 20;

/// Files of converted segments, kept for the next ones, and the names of future files.
///
/// **Invariant:** no name is given twice, in one opening or in many. Names are numbered independently of segments: the
/// number of a segment whose header never reached the device is used again after a crash, while the file with that
/// number in its name may still exist and contain another segment by then.
///
/// **Invariant:** files are released old to young, and released before they are used again or removed
/// ([decision 0058](../../../../docs/decisions/0058-what-dies-in-the-log-stays-there.md)).
#[derive(Debug, Default)]
pub(crate) struct Recycler {
    files: Mutex<Vec<Arc<dyn File>>>,
    waiting: Mutex<Waiting>,
    /// Above the numbers of all names used so far.
    next_name: AtomicU64,
}

/// Files that are to be released.
#[derive(Debug, Default)]
struct Waiting {
    /// With the numbers of their segments.
    files: Vec<(SegmentId, Arc<dyn File>)>,
    /// Whether it is unknown what is on the device. Nothing is released any more.
    has_failed: bool,
}

impl Waiting {
    /// Releases the files, old to young.
    fn release(&mut self) -> Result<Vec<Arc<dyn File>>> {
        self.files.sort_by_key(|(id, _)| *id);
        self.files.iter().try_for_each(|(_, file)| release(&**file))?;
        Ok(std::mem::take(&mut self.files).into_iter().map(|(_, file)| file).collect())
    }
}

impl Recycler {
    /// Takes a file of no segment, or of a released one.
    pub fn add(&self, file: Arc<dyn File>) {
        self.files.lock().expect("no panic while held").push(file);
    }

    /// Takes the file of a segment that is no part of the log any more. It is not used before it is released.
    pub fn add_unreleased(&self, id: SegmentId, file: Arc<dyn File>) {
        self.waiting.lock().expect("no panic while held").files.push((id, file));
    }

    /// Releases all files that wait for it, then that of `segment`, which is younger. Everything in them that is still
    /// needed is durable elsewhere, and so is the manifest that says so.
    pub fn release(&self, segment: Option<&Segment>) -> Result<()> {
        let mut waiting = self.waiting.lock().expect("no panic while held");
        if waiting.has_failed || (waiting.files.is_empty() && segment.is_none()) {
            return Ok(());
        }
        let released = waiting.release().and_then(|files| {
            self.files.lock().expect("no panic while held").extend(files);
            segment.map_or(Ok(()), |segment| segment.release(release))
        });
        match released {
            Err(error) if lacks_space(&error) => {
                waiting.files.extend(segment.map(|segment| (segment.id, segment.file())));
                Ok(())
            }
            released => {
                waiting.has_failed = released.is_err();
                released
            }
        }
    }

    /// Prevents the name of a file that was found from being given to another.
    pub fn note_name(&self, name: &str) {
        if let Some(number) = name_number(name) {
            self.next_name.fetch_max(number + 1, Ordering::Relaxed);
        }
    }

    /// A name that no file ever had: the segment's number if that is free.
    pub(super) fn fresh_name(&self, id: SegmentId) -> String {
        let number = self.next_name.load(Ordering::Relaxed).max(id.0);
        self.next_name.store(number + 1, Ordering::Relaxed);
        file_name(number)
    }

    pub(super) fn take(&self) -> Option<Arc<dyn File>> {
        self.files.lock().expect("no panic while held").pop()
    }

    /// Cuts off most of the space of files that are not in use.
    pub fn trim(&self) {
        for file in &*self.files.lock().expect("no panic while held") {
            if file.len().is_ok_and(|len| len > SPACE_KEPT_BYTES + SPACE_TRIMMED_BYTES_MIN) {
                // Space that cannot be given back is used again.
                let _ = file.set_len(SPACE_KEPT_BYTES);
            }
        }
    }

    /// Keeps at most `count` files and returns the others, to be removed.
    pub fn surplus(&self, count: usize) -> Vec<Arc<dyn File>> {
        let mut files = self.files.lock().expect("no panic while held");
        let keep = files.len().min(count);
        files.split_off(keep)
    }
}

/// Durably marks a log file as one without a segment.
fn release(file: &dyn File) -> Result<()> {
    let mut block = AlignedBuffer::zeroed(BLOCK as usize);
    block.copy_from_slice(&SegmentHeader::encode_released());
    file.write_at(&block, 0).context(|| format!("releasing log file {}", file.name()))?;
    file.sync().context(|| format!("syncing log file {}", file.name()))
}

/// The name of log file `number`. Recycled files keep their name; the segment's number is in the header.
fn file_name(number: u64) -> String {
    format!("log-{number:08}")
}

/// The number in a log file's name; `None` for names that were not made here.
fn name_number(name: &str) -> Option<u64> {
    // A number beyond the bound is not ours: ours will never get that high.
    name.strip_prefix("log-")?.parse().ok().filter(|&number| number < u64::MAX / 2)
}
