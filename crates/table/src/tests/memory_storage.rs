//! A storage in memory that counts reads and lets tests damage bytes.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use alluvium_io::{DirectoryLock, File, OpenMode, Storage};

/// Files by name. Handles share the bytes, so damage shows immediately.
#[derive(Clone, Debug, Default)]
pub struct MemoryStorage {
    files: Arc<Mutex<BTreeMap<String, Arc<MemoryFile>>>>,
}

#[derive(Debug)]
pub struct MemoryFile {
    name: String,
    bytes: Mutex<Vec<u8>>,
    reads: AtomicU64,
}

impl MemoryStorage {
    /// A storage with the one file `name` of `bytes`.
    pub fn with_file(name: &str, bytes: &[u8]) -> Self {
        let storage = Self::default();
        let file = storage.open(name, OpenMode::Create).unwrap();
        file.write_at(bytes, 0).unwrap();
        storage
    }

    pub fn file(&self, name: &str) -> Arc<MemoryFile> {
        Arc::clone(&self.files.lock().unwrap()[name])
    }
}

impl MemoryFile {
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().unwrap().clone()
    }

    pub fn flip(&self, offset: usize, mask: u8) {
        self.bytes.lock().unwrap()[offset] ^= mask;
    }

    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }
}

impl Storage for MemoryStorage {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn File>> {
        let mut files = self.files.lock().unwrap();
        match (files.get(name), mode) {
            (Some(_), OpenMode::Create) => Err(Error::from(ErrorKind::AlreadyExists)),
            (Some(file), _) => Ok(Arc::clone(file) as Arc<dyn File>),
            (None, OpenMode::Create) => {
                let file = Arc::new(MemoryFile {
                    name: name.to_owned(),
                    bytes: Mutex::default(),
                    reads: AtomicU64::new(0),
                });
                files.insert(name.to_owned(), Arc::clone(&file));
                Ok(file)
            }
            (None, _) => Err(Error::from(ErrorKind::NotFound)),
        }
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.files.lock().unwrap().remove(name);
        Ok(())
    }

    fn rename(&self, _from: &str, _to: &str) -> Result<()> {
        Err(Error::from(ErrorKind::Unsupported))
    }

    fn list(&self) -> Result<Vec<String>> {
        Ok(self.files.lock().unwrap().keys().cloned().collect())
    }

    fn sync_directory(&self) -> Result<()> {
        Ok(())
    }

    fn lock(&self, _name: &str) -> Result<Box<dyn DirectoryLock>> {
        Err(Error::from(ErrorKind::Unsupported))
    }

    fn describe(&self) -> String {
        "memory".to_owned()
    }
}

impl File for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let bytes = self.bytes.lock().unwrap();
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write_at(&self, new: &[u8], offset: u64) -> Result<()> {
        let mut bytes = self.bytes.lock().unwrap();
        let end = offset as usize + new.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(new);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.bytes.lock().unwrap().resize(len as usize, 0);
        Ok(())
    }

    fn punch_hole(&self, _offset: u64, _len: u64) -> Result<()> {
        Ok(())
    }

    fn allocated_bytes(&self) -> Result<u64> {
        self.len()
    }

    fn name(&self) -> &str {
        &self.name
    }
}
