//! A handle of a simulated file.

use std::io::{ErrorKind, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::disk::{Disk, Kind};
use super::inode::Change;
use super::names::InodeNumber;
use crate::File;
use crate::error::FileError;
use crate::sync::yield_point;

/// An open file of one generation of a [`super::SimulatedStorage`].
#[derive(Debug)]
pub(super) struct SimulatedFile {
    disk: Arc<Mutex<Disk>>,
    generation: u64,
    inode: InodeNumber,
    name: String,
    is_writable: bool,
}

/// Locks the state; a panic of another test thread does not make it wrong.
pub(super) fn lock(disk: &Mutex<Disk>) -> MutexGuard<'_, Disk> {
    disk.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SimulatedFile {
    /// A handle that the caller has counted in the inode already.
    pub(super) fn new(
        disk: Arc<Mutex<Disk>>,
        generation: u64,
        inode: InodeNumber,
        name: &str,
        is_writable: bool,
    ) -> Self {
        Self { disk, generation, inode, name: name.to_owned(), is_writable }
    }

    fn change(&self, operation: &'static str, offset: u64, change: Change) -> Result<()> {
        let run = || {
            if !self.is_writable {
                return Err(ErrorKind::PermissionDenied.into());
            }
            yield_point();
            let mut disk = lock(&self.disk);
            let fails = disk.begin(self.generation, Kind::Write)?;
            disk.change(self.inode, change, fails)
        };
        run().map_err(|error| FileError::wrap(operation, &self.name, Some(offset), error))
    }

    fn error(&self, operation: &'static str, error: std::io::Error) -> std::io::Error {
        FileError::wrap(operation, &self.name, None, error)
    }

    fn inspect<T>(&self, look: impl FnOnce(&super::sparse_bytes::SparseBytes) -> T) -> Result<T> {
        let mut disk = lock(&self.disk);
        let looked = disk.check(self.generation).and_then(|()| Ok(look(&disk.inode(self.inode)?.live)));
        looked.map_err(|error| self.error("stat", error))
    }
}

impl File for SimulatedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut run = || {
            yield_point();
            let mut disk = lock(&self.disk);
            if disk.begin(self.generation, Kind::Read)? {
                return Err(super::SimulatedFault::Device.into());
            }
            Ok(disk.inode(self.inode)?.live.read(buffer, offset))
        };
        run().map_err(|error| FileError::wrap("read", &self.name, Some(offset), error))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let end = offset.checked_add(bytes.len() as u64).filter(|&end| end <= i64::MAX as u64);
        if end.is_none() {
            return Err(FileError::wrap("write", &self.name, Some(offset), ErrorKind::InvalidInput.into()));
        }
        self.change("write", offset, Change::Write { offset, bytes: bytes.to_vec() })
    }

    fn sync(&self) -> Result<()> {
        yield_point();
        let mut disk = lock(&self.disk);
        let synced = disk
            .begin(self.generation, Kind::Sync)
            .and_then(|fails| disk.sync(self.inode, &self.name, fails));
        synced.map_err(|error| self.error("sync", error))
    }

    fn len(&self) -> Result<u64> {
        self.inspect(super::sparse_bytes::SparseBytes::len)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.change("resize", len, Change::SetLen(len))
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        self.change("punch a hole into", offset, Change::Punch { offset, len })
    }

    fn allocated_bytes(&self) -> Result<u64> {
        self.inspect(super::sparse_bytes::SparseBytes::allocated_bytes)
    }

    fn available_bytes(&self) -> Result<Option<u64>> {
        Ok(lock(&self.disk).available_bytes())
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        let mut disk = lock(&self.disk);
        if disk.check(self.generation).is_ok()
            && let Ok(inode) = disk.inode(self.inode)
        {
            inode.handles -= 1;
            if inode.handles == 0 {
                disk.collect_one(self.inode);
            }
        }
    }
}
