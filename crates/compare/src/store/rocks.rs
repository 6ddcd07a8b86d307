//! RocksDB, leveled: Bloom filters of 10 bits, direct reads, no compression, indexes and filters beside the cache.

use std::path::Path;

use alluvium_bench::BenchError;
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, Options as RocksOptions, ReadOptions, SliceTransform,
    WriteBatch, WriteOptions, properties,
};

use super::engine::{Engine, Reader, Settings, failed, wait_while};
use super::items::Key;

const NAME: &str = "rocksdb";
/// Bits of the Bloom filters per key, as its guide recommends.
const BLOOM_BITS: f64 = 10.0;

pub struct Rocks {
    db: DB,
    is_durable: bool,
    is_grouped: bool,
}

impl Rocks {
    pub fn open(path: &Path, settings: &Settings) -> Result<Self, BenchError> {
        let cache_bytes = settings.block_cache_bytes() as usize;
        let cache = Cache::new_lru_cache(cache_bytes).map_err(rocks_failed)?;
        let mut table = BlockBasedOptions::default();
        table.set_block_cache(&cache);
        table.set_bloom_filter(BLOOM_BITS, false);
        table.set_format_version(5);
        let mut options = RocksOptions::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&table);
        options.set_compression_type(DBCompressionType::None);
        options.set_use_direct_reads(true);
        options.set_use_direct_io_for_flush_and_compaction(true);
        options.increase_parallelism(2);
        if let Some(bytes) = settings.prefix_bytes {
            options.set_prefix_extractor(SliceTransform::create_fixed_prefix(bytes));
            options.set_memtable_prefix_bloom_ratio(0.1);
        }
        let db = DB::open(&options, path).map_err(rocks_failed)?;
        Ok(Self { db, is_durable: settings.is_durable, is_grouped: settings.prefix_bytes.is_some() })
    }

    fn write_options(&self) -> WriteOptions {
        let mut options = WriteOptions::default();
        options.set_sync(self.is_durable);
        options
    }

    fn remove(&self, key: &[u8]) -> Result<(), BenchError> {
        self.db.delete_opt(key, &self.write_options()).map_err(rocks_failed)
    }

    fn is_busy(&self) -> bool {
        let work = [
            properties::COMPACTION_PENDING,
            properties::NUM_RUNNING_COMPACTIONS,
            properties::MEM_TABLE_FLUSH_PENDING,
            properties::NUM_RUNNING_FLUSHES,
        ];
        work.into_iter()
            .any(|name| self.db.property_int_value(name).is_ok_and(|value| value.unwrap_or(0) > 0))
    }
}

impl Engine for Rocks {
    fn reader(&self) -> Result<Box<dyn Reader + '_>, BenchError> {
        Ok(Box::new(self))
    }

    fn put(&self, key: &Key, value: &[u8]) -> Result<(), BenchError> {
        self.db.put_opt(key, value, &self.write_options()).map_err(rocks_failed)
    }

    fn put_all(&self, items: &[(Key, Vec<u8>)]) -> Result<(), BenchError> {
        let mut batch = WriteBatch::default();
        items.iter().for_each(|(key, value)| batch.put(key, value));
        self.db.write_opt(batch, &self.write_options()).map_err(rocks_failed)
    }

    fn take(&self, key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        let Some(value) = self.db.get_pinned(key).map_err(rocks_failed)? else { return Ok(false) };
        look(&value);
        self.remove(key)?;
        Ok(true)
    }

    fn take_head(&self, _key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        let mut items = self.db.raw_iterator();
        items.seek_to_first();
        let Some((key, value)) = items.item() else {
            return items.status().map_err(rocks_failed).map(|()| false);
        };
        look(value);
        self.remove(key)?;
        Ok(true)
    }

    fn settle(&self) -> Result<(), BenchError> {
        self.db.flush().map_err(rocks_failed)?;
        wait_while(NAME, || self.is_busy())
    }
}

impl Reader for &Rocks {
    fn get(&mut self, key: &Key, look: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        let value = self.db.get_pinned(key).map_err(rocks_failed)?;
        Ok(value.map(|value| look(&value)).is_some())
    }

    fn scan(&mut self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), BenchError> {
        let mut options = ReadOptions::default();
        options.set_prefix_same_as_start(self.is_grouped);
        let mut items = self.db.raw_iterator_opt(options);
        items.seek(prefix);
        while let Some((key, value)) = items.item() {
            visit(key, value);
            items.next();
        }
        items.status().map_err(rocks_failed)
    }
}

fn rocks_failed(error: rocksdb::Error) -> BenchError {
    failed(NAME, error)
}
