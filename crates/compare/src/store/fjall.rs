//! fjall 3: a log-structured merge tree in Rust. It reads through the page cache, in addition to its own block cache.

use std::path::Path;

use alluvium_bench::BenchError;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};

use super::engine::{Engine, Reader, Settings, failed, wait_while};
use super::items::Key;

const NAME: &str = "fjall";
/// Minimum bytes of values that are stored apart from keys, as its guide recommends for large values.
const SEPARATED_BYTES_MIN: usize = 4 << 10;

pub struct Fjall {
    database: Database,
    items: Keyspace,
    is_durable: bool,
}

impl Fjall {
    pub fn open(path: &Path, settings: &Settings) -> Result<Self, BenchError> {
        let database =
            Database::builder(path).cache_size(settings.block_cache_bytes()).open().map_err(fjall_failed)?;
        let is_separated = settings.value_bytes >= SEPARATED_BYTES_MIN;
        let options = move || {
            let separation = is_separated.then(KvSeparationOptions::default);
            KeyspaceCreateOptions::default().with_kv_separation(separation)
        };
        let items = database.keyspace("items", options).map_err(fjall_failed)?;
        Ok(Self { database, items, is_durable: settings.is_durable })
    }

    fn persist(&self) -> Result<(), BenchError> {
        if self.is_durable {
            self.database.persist(PersistMode::SyncData).map_err(fjall_failed)
        } else {
            Ok(())
        }
    }
}

impl Engine for Fjall {
    fn reader(&self) -> Result<Box<dyn Reader + '_>, BenchError> {
        Ok(Box::new(&self.items))
    }

    fn put(&self, key: &Key, value: &[u8]) -> Result<(), BenchError> {
        self.items.insert(key.as_slice(), value).map_err(fjall_failed)?;
        self.persist()
    }

    fn take(&self, key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        let Some(value) = self.items.get(key).map_err(fjall_failed)? else { return Ok(false) };
        look(&value);
        self.items.remove(key.as_slice()).map_err(fjall_failed)?;
        self.persist()?;
        Ok(true)
    }

    fn take_head(&self, _key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        let Some(first) = self.items.first_key_value() else { return Ok(false) };
        let (key, value) = first.into_inner().map_err(fjall_failed)?;
        look(&value);
        self.items.remove(key).map_err(fjall_failed)?;
        self.persist()?;
        Ok(true)
    }

    fn settle(&self) -> Result<(), BenchError> {
        self.items.rotate_memtable_and_wait().map_err(fjall_failed)?;
        wait_while(NAME, || {
            self.database.outstanding_flushes() > 0 || self.database.active_compactions() > 0
        })?;
        self.database.persist(PersistMode::SyncAll).map_err(fjall_failed)
    }
}

impl Reader for &Keyspace {
    fn get(&mut self, key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        let value = Keyspace::get(self, key).map_err(fjall_failed)?;
        Ok(value.map(|value| look(&value)).is_some())
    }

    fn scan(&mut self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), BenchError> {
        for item in self.prefix(prefix) {
            let (key, value) = item.into_inner().map_err(fjall_failed)?;
            visit(&key, &value);
        }
        Ok(())
    }
}

fn fjall_failed(error: fjall::Error) -> BenchError {
    failed(NAME, error)
}
