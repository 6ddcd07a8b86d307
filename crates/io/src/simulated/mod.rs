//! A storage in memory that fails on purpose.
//!
//! It implements the same traits as a real directory, so that a simulation runs the production code, and takes away
//! everything that the traits do not promise: at a crash, each unsynced write is lost, kept, or torn at 512-byte
//! sectors, whatever happens to the writes before and after it; a length may arrive without its bytes; each unsynced
//! creation, renaming and removal is lost or kept in any combination a file system could leave (renames are atomic,
//! changes of one name keep their order). Sectors are assumed to be written whole or not at all: synced bytes are
//! never lost.
//!
//! Everything random comes from one seed: the same seed and the same operations have the same outcome.
//! The idea is that of LevelDB's `fault_injection_test.cc` and TigerBeetle's `testing/storage.zig`.

mod clock;
mod disk;
mod fault;
mod file;
mod inode;
mod names;
mod sparse_bytes;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::sync::{Arc, Mutex};

use crate::error::{FileError, check_name};
use crate::sync::yield_point;
use crate::{DirectoryLock, File, OpenMode, Storage};
pub use clock::SimulatedClock;
use disk::{Disk, Holders, Kind};
pub use fault::{FaultPlan, PlantedBug, SimulatedFault};
use file::{SimulatedFile, lock};
use inode::Inode;

/// A simulated directory, as one process between two crashes sees it. Clones are the same directory.
#[derive(Clone, Debug)]
pub struct SimulatedStorage {
    disk: Arc<Mutex<Disk>>,
    generation: u64,
}

impl SimulatedStorage {
    /// An empty directory.
    pub fn new(seed: u64) -> Self {
        Self { disk: Arc::new(Mutex::new(Disk::new(seed))), generation: 0 }
    }

    /// A directory that durably holds `contents`, by name: with [`SimulatedStorage::contents`], a copy of another.
    pub fn from_contents(seed: u64, contents: &BTreeMap<String, Vec<u8>>) -> Self {
        let mut disk = Disk::new(seed);
        for (name, bytes) in contents {
            let inode = disk.add_inode(Inode::with_durable(bytes));
            disk.names.add_durable(name.clone(), inode);
        }
        Self { disk: Arc::new(Mutex::new(disk)), generation: 0 }
    }

    /// The files as a reader sees them now, unsynced changes included; after a crash, what survived. Works on a
    /// crashed storage too.
    pub fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let disk = lock(&self.disk);
        let bytes =
            |inode| disk.inodes.get(inode).map(|inode: &Inode| inode.live.to_vec()).unwrap_or_default();
        disk.names.live.iter().map(|(name, inode)| (name.clone(), bytes(inode))).collect()
    }

    /// The power fails now. This storage, its clones, files and locks are dead from here on;
    /// [`SimulatedStorage::reopen`] gives a storage that sees what survived. A second crash before that does nothing.
    pub fn crash(&self) {
        let mut disk = lock(&self.disk);
        if !disk.is_down {
            disk.crash();
        }
    }

    /// The process dies now, and the machine keeps running: handles and locks die as at a crash, but nothing is lost
    /// (and unsynced changes are still unsynced).
    pub fn kill(&self) {
        let mut disk = lock(&self.disk);
        if !disk.is_down {
            disk.kill();
        }
    }

    /// Starts anew after a crash, or after a [`SimulatedStorage::kill`], which is implied when neither happened. The
    /// fault plan is cleared; planted bugs stay.
    pub fn reopen(&self) -> Self {
        let generation = lock(&self.disk).reopen();
        Self { disk: Arc::clone(&self.disk), generation }
    }

    /// Whether this storage is dead, by a crash, a kill or a reopening.
    pub fn is_crashed(&self) -> bool {
        lock(&self.disk).check(self.generation).is_err()
    }

    /// Whether this storage is dead because its process died while the machine kept running: what was written is there,
    /// synced or not.
    pub fn is_killed(&self) -> bool {
        lock(&self.disk).is_killed
    }

    /// Sets the faults to come and counts for them from 0.
    pub fn set_faults(&self, faults: FaultPlan) {
        lock(&self.disk).set_faults(faults);
    }

    /// Makes the device larger or smaller (`None`: unlimited), in addition to the planned faults.
    pub fn set_quota(&self, quota_bytes: Option<u64>) {
        lock(&self.disk).set_quota(quota_bytes);
    }

    /// Bytes of the device that files occupy: what a quota counts.
    pub fn used_bytes(&self) -> u64 {
        lock(&self.disk).used_bytes()
    }

    /// Makes the storage misbehave as if the engine above had `bug`, from now on and in all later generations.
    pub fn plant(&self, bug: PlantedBug) {
        lock(&self.disk).planted.push(bug);
    }

    /// Changes and syncs attempted so far, in all generations: the number of different moments at which a crash can
    /// strike. Reads are not counted, since a crash before a read leaves what a crash after it leaves.
    pub fn operation_count(&self) -> u64 {
        lock(&self.disk).operation_count
    }

    /// Reads attempted so far, in all generations.
    pub fn read_count(&self) -> u64 {
        lock(&self.disk).read_count
    }

    /// Damages the medium: inverts bit `bit % 8` of the byte at `offset` of the file `name`.
    ///
    /// # Errors
    /// `NotFound` without such a file, `UnexpectedEof` when it is shorter.
    pub fn flip_bit(&self, name: &str, offset: u64, bit: u32) -> Result<()> {
        let mut disk = lock(&self.disk);
        let number = disk.lookup(name)?;
        let inode = disk.inode(number)?;
        if offset >= inode.live.len() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        inode.flip_bit(offset, bit);
        Ok(())
    }

    /// Runs one change of the directory: counted, and failed where the plan says so.
    fn change<T>(&self, run: impl FnOnce(&mut Disk) -> Result<T>) -> Result<T> {
        yield_point();
        let mut disk = lock(&self.disk);
        if disk.begin(self.generation, Kind::Write)? {
            return Err(SimulatedFault::Device.into());
        }
        run(&mut disk)
    }

    fn open_file(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn File>> {
        lock(&self.disk).begin_open(self.generation)?;
        let number = if mode == OpenMode::Create {
            self.change(|disk| {
                if disk.names.live.contains_key(name) {
                    return Err(ErrorKind::AlreadyExists.into());
                }
                let number = disk.add_inode(Inode::default());
                disk.inode(number)?.handles = 1;
                disk.names.create(name, number);
                Ok(number)
            })?
        } else {
            yield_point();
            let mut disk = lock(&self.disk);
            disk.check(self.generation)?;
            let number = disk.lookup(name)?;
            disk.inode(number)?.handles += 1;
            number
        };
        let is_writable = mode != OpenMode::Read;
        Ok(Arc::new(SimulatedFile::new(Arc::clone(&self.disk), self.generation, number, name, is_writable)))
    }
}

impl Storage for SimulatedStorage {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn File>> {
        check_name(name)?;
        let operation = if mode == OpenMode::Create { "create" } else { "open" };
        self.open_file(name, mode).map_err(|error| FileError::wrap(operation, name, None, error))
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_name(name)?;
        let removed = self.change(|disk| {
            disk.lookup(name)?;
            disk.names.remove(name);
            disk.collect();
            Ok(())
        });
        removed.map_err(|error| FileError::wrap("remove", name, None, error))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_name(from)?;
        check_name(to)?;
        let renamed = self.change(|disk| {
            let inode = disk.lookup(from)?;
            if from != to {
                disk.names.rename(from, to, inode);
                disk.collect();
            }
            Ok(())
        });
        renamed.map_err(|error| FileError::wrap("rename", &format!("{from} to {to}"), None, error))
    }

    fn list(&self) -> Result<Vec<String>> {
        yield_point();
        let disk = lock(&self.disk);
        disk.check(self.generation).map_err(|error| FileError::wrap("list", "the directory", None, error))?;
        Ok(disk.names.live.keys().cloned().collect())
    }

    fn sync_directory(&self) -> Result<()> {
        yield_point();
        let mut disk = lock(&self.disk);
        let synced = disk.begin(self.generation, Kind::Sync).and_then(|fails| disk.sync_names(fails));
        synced.map_err(|error| FileError::wrap("sync", "the directory", None, error))
    }

    fn available_bytes(&self) -> Result<Option<u64>> {
        Ok(lock(&self.disk).available_bytes())
    }

    fn lock(&self, name: &str) -> Result<Box<dyn DirectoryLock>> {
        check_name(name)?;
        match self.open(name, OpenMode::Create) {
            Ok(file) => file.write_at(format!("{}\n", std::process::id()).as_bytes(), 0)?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let mut disk = lock(&self.disk);
        disk.check(self.generation)?;
        if disk.locks.contains_key(name) {
            return Err(is_locked(name));
        }
        disk.locks.insert(name.to_owned(), Holders::Writer);
        Ok(Box::new(self.held(name)))
    }

    fn lock_shared(&self, name: &str) -> Result<Option<Box<dyn DirectoryLock>>> {
        let mut disk = lock(&self.disk);
        disk.check(self.generation)?;
        if !disk.names.live.contains_key(name) {
            return Ok(None);
        }
        match disk.locks.entry(name.to_owned()).or_insert(Holders::Readers(0)) {
            Holders::Writer => Err(is_locked(name)),
            Holders::Readers(count) => {
                *count += 1;
                Ok(Some(Box::new(self.held(name))))
            }
        }
    }

    fn describe(&self) -> String {
        "simulated".to_owned()
    }
}

impl SimulatedStorage {
    fn held(&self, name: &str) -> SimulatedLock {
        SimulatedLock { disk: Arc::clone(&self.disk), generation: self.generation, name: name.to_owned() }
    }
}

fn is_locked(name: &str) -> Error {
    let message = format!("{name} is locked by this process ({})", std::process::id());
    Error::new(ErrorKind::WouldBlock, message)
}

/// The lock of a simulated directory; a crash releases it.
#[derive(Debug)]
struct SimulatedLock {
    disk: Arc<Mutex<Disk>>,
    generation: u64,
    name: String,
}

impl DirectoryLock for SimulatedLock {}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let mut disk = lock(&self.disk);
        if disk.check(self.generation).is_err() {
            return;
        }
        match disk.locks.get_mut(&self.name) {
            Some(Holders::Readers(count)) if *count > 1 => *count -= 1,
            _ => drop(disk.locks.remove(&self.name)),
        }
    }
}
