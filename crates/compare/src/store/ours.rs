//! Alluvium.

use std::path::Path;

use alluvium::{Db, Durability, Keyspace, KeyspaceOptions, PrefixRule};
use alluvium_bench::BenchError;

use super::engine::{Engine, Reader, Settings};
use super::items::Key;

/// A database with its defaults, except for memory and durability.
pub struct Ours {
    db: Db,
    items: Keyspace,
}

impl Ours {
    pub fn open(path: &Path, settings: &Settings) -> Result<Self, BenchError> {
        let durability = if settings.is_durable { Durability::Sync } else { Durability::Process };
        let mut builder = Db::builder(path).durability(durability).memory_bytes_max(settings.memory_bytes);
        if let Some(bytes) = settings.cache_bytes {
            builder = builder.row_cache_bytes_max(bytes);
        }
        if let Some((workload, bytes)) = settings.workload {
            builder = builder.workload(workload).index_bytes_per_item(bytes);
        }
        let db = builder.open()?;
        let options = match settings.prefix_bytes {
            Some(bytes) => KeyspaceOptions::semi_sorted(PrefixRule::Length { bytes: bytes as u16 }),
            None => KeyspaceOptions::default(),
        };
        let items = db.keyspace_with("items", &options)?;
        Ok(Self { db, items })
    }
}

impl Engine for Ours {
    fn reader(&self) -> Result<Box<dyn Reader + '_>, BenchError> {
        Ok(Box::new(&self.items))
    }

    fn put(&self, key: &Key, value: &[u8]) -> Result<(), BenchError> {
        Ok(self.items.insert(key, value)?)
    }

    fn take(&self, key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        let is_found = self.items.get_with(key, |value| look(value))?.is_some();
        if is_found {
            self.items.remove(key)?;
        }
        Ok(is_found)
    }

    fn take_head(&self, key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        // Items have no order of keys: the consumer counts.
        self.take(key, look)
    }

    fn settle(&self) -> Result<(), BenchError> {
        self.db.flush()?;
        Ok(self.db.wait_idle()?)
    }

    fn read_requests(&self) -> Option<u64> {
        let traffic = self.db.stats().traffic;
        Some(traffic.page_reads + traffic.blob_reads)
    }

    fn cached_items(&self) -> Option<u64> {
        Some(self.db.stats().rows.rows)
    }
}

impl Reader for &Keyspace {
    fn get(&mut self, key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        Ok(Keyspace::get(self, key)?.map(|value| look(&value)).is_some())
    }

    fn get_lent(&mut self, key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        Ok(self.get_with(key, |value| look(value))?.is_some())
    }

    fn scan(&mut self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), BenchError> {
        for item in self.scan_prefix(prefix)? {
            let (key, value) = item?;
            visit(&key, &value);
        }
        Ok(())
    }
}
