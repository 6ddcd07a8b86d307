//! LMDB 0.9: a copy-on-write B+-tree in a memory map. Its cache is the page cache of the system, which no setting of
//! its own bounds.

use std::path::Path;

use alluvium_bench::BenchError;
use lmdb::{
    Cursor as _, Database, DatabaseFlags, Environment, EnvironmentFlags, Error, RoTransaction,
    Transaction as _, WriteFlags,
};

use super::engine::{Engine, Reader, Settings, failed};
use super::items::Key;

const NAME: &str = "lmdb";
/// Maximum bytes of the file: of address space, not of memory.
const MAP_BYTES: usize = 1 << 38;
/// Maximum number of read transactions at a time.
const READERS: u32 = 256;

pub struct Lmdb {
    environment: Environment,
    items: Database,
}

impl Lmdb {
    pub fn open(path: &Path, settings: &Settings) -> Result<Self, BenchError> {
        // Readahead would read 128 KiB for an item.
        let mut flags = EnvironmentFlags::NO_READAHEAD;
        flags.set(EnvironmentFlags::NO_SYNC, !settings.is_durable);
        let environment = Environment::new()
            .set_flags(flags)
            .set_map_size(MAP_BYTES)
            .set_max_readers(READERS)
            .open(path)
            .map_err(lmdb_failed)?;
        let items = environment.create_db(None, DatabaseFlags::empty()).map_err(lmdb_failed)?;
        Ok(Self { environment, items })
    }

    /// Changes items in a transaction of its own.
    fn write<R>(
        &self,
        change: impl FnOnce(&mut lmdb::RwTransaction<'_>) -> Result<R, Error>,
    ) -> Result<R, BenchError> {
        let mut transaction = self.environment.begin_rw_txn().map_err(lmdb_failed)?;
        let result = change(&mut transaction).map_err(lmdb_failed)?;
        transaction.commit().map_err(lmdb_failed)?;
        Ok(result)
    }
}

impl Engine for Lmdb {
    fn reader(&self) -> Result<Box<dyn Reader + '_>, BenchError> {
        let transaction = self.environment.begin_ro_txn().map_err(lmdb_failed)?;
        Ok(Box::new(LmdbReader { transaction, items: self.items }))
    }

    fn put(&self, key: &Key, value: &[u8]) -> Result<(), BenchError> {
        self.write(|transaction| transaction.put(self.items, key, &value, WriteFlags::empty()))
    }

    fn put_all(&self, items: &[(Key, Vec<u8>)]) -> Result<(), BenchError> {
        self.write(|transaction| {
            items
                .iter()
                .try_for_each(|(key, value)| transaction.put(self.items, key, value, WriteFlags::empty()))
        })
    }

    fn take(&self, key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        self.write(|transaction| {
            match transaction.get(self.items, key) {
                Ok(value) => look(value),
                Err(Error::NotFound) => return Ok(false),
                Err(error) => return Err(error),
            }
            transaction.del(self.items, key, None).map(|()| true)
        })
    }

    fn take_head(&self, _key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        self.write(|transaction| {
            let mut cursor = transaction.open_rw_cursor(self.items)?;
            match cursor.iter_start().next() {
                Some(item) => look(item?.1),
                None => return Ok(false),
            }
            cursor.del(WriteFlags::empty()).map(|()| true)
        })
    }

    fn settle(&self) -> Result<(), BenchError> {
        self.environment.sync(true).map_err(lmdb_failed)
    }
}

struct LmdbReader<'env> {
    transaction: RoTransaction<'env>,
    items: Database,
}

impl Reader for LmdbReader<'_> {
    fn get(&mut self, key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        match self.transaction.get(self.items, key) {
            Ok(value) => look(value),
            Err(Error::NotFound) => return Ok(false),
            Err(error) => return Err(lmdb_failed(error)),
        }
        Ok(true)
    }

    fn scan(&mut self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), BenchError> {
        let mut cursor = self.transaction.open_ro_cursor(self.items).map_err(lmdb_failed)?;
        for item in cursor.iter_from(prefix) {
            let (key, value) = item.map_err(lmdb_failed)?;
            if !key.starts_with(prefix) {
                break;
            }
            visit(key, value);
        }
        Ok(())
    }
}

fn lmdb_failed(error: Error) -> BenchError {
    failed(NAME, error)
}
