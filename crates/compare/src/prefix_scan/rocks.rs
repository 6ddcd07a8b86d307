//! RocksDB, leveled, configured for prefix scans as its guide recommends: a prefix extractor, Bloom filters over
//! prefixes and whole keys, indexes and filters in the block cache, direct I/O.

use std::path::Path;
use std::time::Duration;

use alluvium_bench::BenchError;
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, DB, DBCompressionType, Options as RocksOptions,
    ReadOptions, SliceTransform, WriteOptions, properties,
};

use super::{Options, Subject};

/// Bits of the Bloom filters per key, as its guide recommends.
const BLOOM_BITS: f64 = 10.0;

/// Bytes of the pieces of indexes and filters, as its guide recommends.
const METADATA_BYTES: usize = 4 << 10;

pub struct RocksDb {
    db: DB,
    cache: Cache,
    write: WriteOptions,
}

impl RocksDb {
    pub fn open(path: &Path, options: &Options) -> Result<Self, BenchError> {
        // Half for two write buffers, half for blocks, indexes and filters.
        let cache = Cache::new_lru_cache((options.memory / 2) as usize).map_err(failed)?;
        let mut table = BlockBasedOptions::default();
        table.set_block_cache(&cache);
        table.set_block_size(options.block_size as usize);
        table.set_bloom_filter(BLOOM_BITS, false);
        table.set_cache_index_and_filter_blocks(true);
        table.set_pin_l0_filter_and_index_blocks_in_cache(true);
        // A shard of a small cache is smaller than the filter of a whole file, which would be read again and again.
        table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
        table.set_partition_filters(true);
        table.set_metadata_block_size(METADATA_BYTES);
        table.set_pin_top_level_index_and_filter(true);
        table.set_format_version(5);
        let mut settings = RocksOptions::default();
        settings.create_if_missing(true);
        settings.set_block_based_table_factory(&table);
        settings.set_prefix_extractor(SliceTransform::create_fixed_prefix(8));
        settings.set_memtable_prefix_bloom_ratio(0.1);
        settings.set_compression_type(DBCompressionType::None);
        settings.set_write_buffer_size((options.memory / 4) as usize);
        settings.set_max_write_buffer_number(2);
        settings.set_use_direct_reads(true);
        settings.set_use_direct_io_for_flush_and_compaction(true);
        settings.increase_parallelism(2);
        let db = DB::open(&settings, path).map_err(failed)?;
        Ok(Self { db, cache, write: WriteOptions::default() })
    }

    fn property(&self, name: &std::ffi::CStr) -> u64 {
        self.db.property_int_value(name).ok().flatten().unwrap_or(0)
    }
}

impl Subject for RocksDb {
    fn name(&self) -> &'static str {
        "rocksdb"
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        self.db.put_opt(key, value, &self.write).map_err(failed)
    }

    fn settle(&mut self) -> Result<(), BenchError> {
        self.db.flush().map_err(failed)?;
        let busy = [properties::COMPACTION_PENDING, properties::NUM_RUNNING_COMPACTIONS];
        while busy.into_iter().any(|name| self.property(name) > 0) {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn scan(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), BenchError> {
        let mut options = ReadOptions::default();
        options.set_prefix_same_as_start(true);
        let mut items = self.db.raw_iterator_opt(options);
        items.seek(prefix);
        while let Some((key, value)) = items.item() {
            visit(key, value);
            items.next();
        }
        items.status().map_err(failed)
    }

    fn memory_bytes(&self) -> u64 {
        self.cache.get_usage() as u64
            + self.property(properties::CUR_SIZE_ALL_MEM_TABLES)
            + self.property(properties::ESTIMATE_TABLE_READERS_MEM)
    }
}

fn failed(error: rocksdb::Error) -> BenchError {
    BenchError::Io(std::io::Error::other(error))
}
