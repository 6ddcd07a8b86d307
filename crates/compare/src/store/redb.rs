//! redb 4: a copy-on-write B-tree in Rust. It reads through the page cache, in addition to its own cache.

use std::path::Path;

use alluvium_bench::BenchError;
use redb::{Database, Durability, ReadOnlyTable, ReadableDatabase as _, Table, TableDefinition};

use super::engine::{Engine, Reader, Settings, failed};
use super::items::Key;

const NAME: &str = "redb";
const ITEMS: TableDefinition<'static, &'static [u8], &'static [u8]> = TableDefinition::new("items");

pub struct Redb {
    database: Database,
    durability: Durability,
}

impl Redb {
    pub fn open(path: &Path, settings: &Settings) -> Result<Self, BenchError> {
        let database = Database::builder()
            .set_cache_size(settings.block_cache_bytes() as usize)
            .create(path.join("items.redb"))
            .map_err(redb_failed)?;
        let durability = if settings.is_durable { Durability::Immediate } else { Durability::None };
        let redb = Self { database, durability };
        // Makes the table, which readers expect.
        redb.write(Durability::Immediate, |_| Ok(()))?;
        Ok(redb)
    }

    /// Changes items in a transaction of its own.
    fn write<R>(
        &self,
        durability: Durability,
        change: impl FnOnce(&mut Table<'_, &'static [u8], &'static [u8]>) -> Result<R, redb::StorageError>,
    ) -> Result<R, BenchError> {
        let mut transaction = self.database.begin_write().map_err(redb_failed)?;
        transaction.set_durability(durability).map_err(redb_failed)?;
        let mut items = transaction.open_table(ITEMS).map_err(redb_failed)?;
        let result = change(&mut items).map_err(redb_failed)?;
        drop(items);
        transaction.commit().map_err(redb_failed)?;
        Ok(result)
    }
}

impl Engine for Redb {
    fn reader(&self) -> Result<Box<dyn Reader + '_>, BenchError> {
        let transaction = self.database.begin_read().map_err(redb_failed)?;
        Ok(Box::new(transaction.open_table(ITEMS).map_err(redb_failed)?))
    }

    fn put(&self, key: &Key, value: &[u8]) -> Result<(), BenchError> {
        self.write(self.durability, |items| items.insert(key.as_slice(), value).map(|_| ()))
    }

    fn put_all(&self, items: &[(Key, Vec<u8>)]) -> Result<(), BenchError> {
        self.write(self.durability, |table| {
            let mut items = items.iter();
            items.try_for_each(|(key, value)| table.insert(key.as_slice(), value.as_slice()).map(|_| ()))
        })
    }

    fn take(&self, key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        self.write(self.durability, |items| {
            let value = items.remove(key.as_slice())?;
            Ok(value.map(|value| look(value.value())).is_some())
        })
    }

    fn take_head(&self, _key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        self.write(self.durability, |items| {
            let first = items.pop_first()?;
            Ok(first.map(|(_, value)| look(value.value())).is_some())
        })
    }

    fn settle(&self) -> Result<(), BenchError> {
        self.write(Durability::Immediate, |_| Ok(()))
    }
}

impl Reader for ReadOnlyTable<&'static [u8], &'static [u8]> {
    fn get(&mut self, key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        let value = ReadOnlyTable::get(self, key.as_slice()).map_err(redb_failed)?;
        Ok(value.map(|value| look(value.value())).is_some())
    }

    fn scan(&mut self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), BenchError> {
        for item in self.range(prefix..).map_err(redb_failed)? {
            let (key, value) = item.map_err(redb_failed)?;
            if !key.value().starts_with(prefix) {
                break;
            }
            visit(key.value(), value.value());
        }
        Ok(())
    }
}

fn redb_failed(error: impl std::fmt::Display) -> BenchError {
    failed(NAME, error)
}
