//! [`FileHandle`]: a handle of a file of a real directory. The file is open or can be opened again.

use std::any::Any;
use std::io::Result;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, PoisonError};

use super::directory::Directory;
use super::open_file::OpenFile;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{ArcSwapGuard, ArcSwapOption, Mutex};
use crate::{File, OpenMode};

/// A handle, shared with the reads in flight.
#[derive(Clone, Debug)]
pub(super) struct FileHandle(Arc<NamedFile>);

/// A file of a directory under the name that it was opened under.
///
/// A file that is only read gives its descriptor back when others need it, and is opened again by its name at its next
/// use. The name keeps meaning the same bytes: [`Directory`] opens a file for good before its name is removed or given
/// to another.
#[derive(Debug)]
pub(super) struct NamedFile {
    name: String,
    directory: Arc<Directory>,
    /// `None` while the file is closed.
    slot: ArcSwapOption<OpenFile>,
    /// Whether the file was used since the last search for a descriptor to take back.
    is_used: AtomicBool,
    /// Whether the file stays open: because it is written, or because its name is gone. Set while the lock of the set
    /// of open files is held.
    is_kept: AtomicBool,
    /// Whether the name no longer means this file.
    is_nameless: AtomicBool,
    /// Held while the file is opened.
    opening: Mutex<()>,
}

/// An open file while it is used; it stays open as long as this lives.
pub(super) struct InUse(ArcSwapGuard<Option<Arc<OpenFile>>>);

impl Deref for InUse {
    type Target = OpenFile;

    #[inline]
    fn deref(&self) -> &OpenFile {
        self.0.as_deref().expect("made of an open file only")
    }
}

impl NamedFile {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the file stays open.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Relaxed)
    }

    /// Sets whether the file stays open once it is. The caller holds the lock of the set of open files.
    pub(super) fn set_kept(&self, is_kept: bool) {
        self.is_kept.store(is_kept, Ordering::Relaxed);
    }

    /// Marks the name as no longer meaning this file.
    pub(super) fn set_nameless(&self) {
        self.is_nameless.store(true, Ordering::Relaxed);
    }

    /// Whether it was used since the last call.
    pub(super) fn take_used(&self) -> bool {
        self.is_used.swap(false, Ordering::Relaxed)
    }

    /// Gives the descriptor back; threads that use the file have it until they are done. The caller holds the lock of
    /// the set of open files.
    pub(super) fn close(&self) {
        self.slot.store(None);
    }

    /// Opens the file for reading unless it is open.
    pub(super) fn reopen(self: &Arc<Self>) -> Result<()> {
        let _only_one = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if self.slot.load().is_some() {
            return Ok(());
        }
        self.directory.open_files().make_room();
        let file = self.directory.open_file(&self.name, OpenMode::Read)?;
        self.is_used.store(true, Ordering::Relaxed);
        self.slot.store(Some(Arc::new(file)));
        if !self.is_kept() {
            self.directory.open_files().add(Arc::downgrade(self));
        }
        Ok(())
    }
}

impl Drop for NamedFile {
    fn drop(&mut self) {
        if !self.is_kept() {
            self.directory.open_files().count_dropped();
        }
        self.directory.forget(&self.name);
    }
}

impl FileHandle {
    /// Opens the file `name`. A file that is opened for reading only is closed when others need its descriptor.
    pub(super) fn open(directory: &Arc<Directory>, name: &str, mode: OpenMode) -> Result<Self> {
        let writes = mode != OpenMode::Read;
        let file = if writes { Some(Arc::new(directory.open_file(name, mode)?)) } else { None };
        let named = Arc::new(NamedFile {
            name: name.to_owned(),
            directory: Arc::clone(directory),
            slot: ArcSwapOption::new(file),
            is_used: AtomicBool::new(false),
            is_kept: AtomicBool::new(writes),
            is_nameless: AtomicBool::new(false),
            opening: Mutex::new(()),
        });
        directory.note(&named);
        if !writes {
            named.reopen()?;
        }
        Ok(Self(named))
    }

    /// The open file; opens it if it is closed.
    #[inline]
    pub(super) fn file(&self) -> Result<InUse> {
        loop {
            let file = self.0.slot.load();
            if file.is_some() {
                if !self.0.is_used.load(Ordering::Relaxed) {
                    self.0.is_used.store(true, Ordering::Relaxed);
                }
                return Ok(InUse(file));
            }
            self.0.reopen()?;
        }
    }

    /// Like [`FileHandle::file`], for operations in flight.
    pub(super) fn shared_file(&self) -> Result<Arc<OpenFile>> {
        loop {
            if let Some(file) = self.0.slot.load_full() {
                self.0.is_used.store(true, Ordering::Relaxed);
                return Ok(file);
            }
            self.0.reopen()?;
        }
    }
}

impl File for FileHandle {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let file = self.file()?;
        #[cfg(target_os = "linux")]
        return super::polling::read(self, &file, buffer, offset);
        #[cfg(not(target_os = "linux"))]
        file.read(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file()?.write(bytes, offset)
    }

    fn write_cached(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file()?.write_cached(bytes, offset)
    }

    fn sync(&self) -> Result<()> {
        self.file()?.sync()
    }

    fn len(&self) -> Result<u64> {
        Ok(self.file()?.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file()?.set_len(len)
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        self.file()?.punch_hole(offset, len)
    }

    fn allocated_bytes(&self) -> Result<u64> {
        self.file()?.allocated_bytes()
    }

    fn available_bytes(&self) -> Result<Option<u64>> {
        self.file()?.available_bytes()
    }

    fn link_count(&self) -> Result<u64> {
        Ok(self.file()?.metadata()?.nlink())
    }

    fn end_writing(&self) -> Result<()> {
        let named = &self.0;
        let _only_one = named.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let has_failed = named.slot.load().as_ref().is_some_and(|file| file.has_failed_sync());
        if !named.is_kept() || named.is_nameless.load(Ordering::Relaxed) || has_failed {
            return Ok(());
        }
        named.directory.open_files().make_room();
        let file = named.directory.open_file(&named.name, OpenMode::Read)?;
        named.slot.store(Some(Arc::new(file)));
        named.directory.open_files().add_writer(named);
        Ok(())
    }

    fn name(&self) -> &str {
        &self.0.name
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}
