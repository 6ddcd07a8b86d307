//! The designs of the papers whose parameters are plain numbers.

use alluvium_bench::{BenchError, Measurement};
use alluvium_model::models::{ChainDirectory, Cost, SkimpyStash};
use alluvium_papers::models::{Cola, LevelDb, LsmTrie, Samt, Silt, SiltClosedForm};

use super::keys::KeyOptions;
use super::output::{WearOptions, add_cost, measurement};

/// Bytes of an item, for designs whose sizes are in items: only the device's lifetime depends on it.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct ItemOptions {
    /// Bytes of an item, for the device's lifetime
    #[arg(long, default_value_t = 1024.0)]
    item_bytes: f64,
}

/// The main parameters of LevelDB's cost, both for its model and for choosing its level sizes.
#[derive(Clone, Debug, clap::Args)]
pub struct LevelDbShape {
    /// Requests of one write-ahead log
    #[arg(long, default_value_t = LevelDb::default().wal)]
    pub wal: f64,
    /// Tables of level 0 that start its compaction
    #[arg(long, default_value_t = LevelDb::default().level0_tables)]
    pub level0_tables: f64,
    /// Sizes of levels 1 and up; a last level with all keys follows, unless the list ends with one
    #[arg(long, value_delimiter = ',', default_values_t = LevelDb::default().sizes)]
    pub sizes: Vec<f64>,
}

/// Options of `leveldb`. Defaults are LevelDB's for items of 1,000 bytes.
#[derive(Clone, Debug, clap::Args)]
pub struct LevelDbOptions {
    #[command(flatten)]
    keys: KeyOptions,
    #[command(flatten)]
    shape: LevelDbShape,
    /// Bits of Bloom filter per item
    #[arg(long, default_value_t = 0.0)]
    filter_bits: f64,
    /// Bytes of index in memory per item
    #[arg(long, default_value_t = LevelDb::default().index_bytes)]
    index_bytes: f64,
    #[command(flatten)]
    item: ItemOptions,
    #[command(flatten)]
    wear: WearOptions,
}

/// Options of `cola` and `samt`.
#[derive(Clone, Debug, clap::Args)]
pub struct StageOptions {
    #[command(flatten)]
    keys: KeyOptions,
    /// Requests of one write-ahead log
    #[arg(long, default_value_t = LevelDb::default().wal)]
    wal: f64,
    /// Number of levels; the last one has all keys
    #[arg(long, default_value_t = 5)]
    levels: u32,
    /// Growth factor
    #[arg(long, default_value_t = 4)]
    growth: u32,
    /// Bytes of index in memory per item
    #[arg(long, default_value_t = LevelDb::default().index_bytes)]
    index_bytes: f64,
    #[command(flatten)]
    item: ItemOptions,
    #[command(flatten)]
    wear: WearOptions,
}

/// Options of `silt`. Keys are those of one instance: 25 million in the thesis.
#[derive(Clone, Debug, clap::Args)]
pub struct SiltOptions {
    #[command(flatten)]
    keys: KeyOptions,
    /// Slots of LogStore and HashStore
    #[arg(long, default_value_t = Silt::default().table)]
    table: f64,
    /// Share of the slots that are filled
    #[arg(long, default_value_t = Silt::default().occupancy)]
    occupancy: f64,
    /// Number of HashStores merged together
    #[arg(long, default_value_t = Silt::default().hash_stores)]
    hash_stores: f64,
    /// Bits of a tag
    #[arg(long, default_value_t = Silt::default().tag_bits)]
    tag_bits: u32,
    /// Bytes of index per item of the SortedStore
    #[arg(long, default_value_t = Silt::default().sorted_bytes)]
    sorted_bytes: f64,
    #[command(flatten)]
    item: ItemOptions,
    #[command(flatten)]
    wear: WearOptions,
}

/// Options of `silt-closed-form`.
#[derive(Clone, Debug, clap::Args)]
pub struct SiltClosedFormOptions {
    /// N: keys of all instances
    #[arg(long, default_value_t = SiltClosedForm::default().items)]
    keys: f64,
    /// Zipf skew; must be 0, since the closed forms are for uniform updates
    #[arg(long, default_value_t = 0.0)]
    skew: f64,
    /// P: instances
    #[arg(long, default_value_t = SiltClosedForm::default().instances)]
    instances: f64,
    /// d: items of an instance that are merged together
    #[arg(long, default_value_t = SiltClosedForm::default().merge_items)]
    merge_items: f64,
    /// k: bits of a tag
    #[arg(long, default_value_t = SiltClosedForm::default().tag_bits)]
    tag_bits: u32,
    #[command(flatten)]
    item: ItemOptions,
    #[command(flatten)]
    wear: WearOptions,
}

/// Options of `lsm-trie`.
#[derive(Clone, Debug, clap::Args)]
pub struct LsmTrieOptions {
    #[command(flatten)]
    keys: KeyOptions,
    /// Children of a container
    #[arg(long, default_value_t = LsmTrie::default().growth)]
    growth: u32,
    /// Mean number of runs over a position, at each level but the last
    #[arg(long, default_value_t = LsmTrie::default().runs)]
    runs: u32,
    /// Levels above the last one
    #[arg(long, default_value_t = LsmTrie::default().upper_levels)]
    upper_levels: u32,
    /// Bytes of an HTable
    #[arg(long, default_value_t = LsmTrie::default().table_bytes)]
    table_bytes: f64,
    /// Share of an HTable that is filled
    #[arg(long, default_value_t = LsmTrie::default().fill)]
    fill: f64,
    /// Bytes of an item
    #[arg(long, default_value_t = LsmTrie::default().item_bytes)]
    item_bytes: f64,
    /// Bits of Bloom filter per item
    #[arg(long, default_value_t = LsmTrie::default().filter_bits)]
    filter_bits: f64,
    /// Reads to fetch an item from an HTable
    #[arg(long, default_value_t = LsmTrie::default().bucket_reads)]
    bucket_reads: f64,
    /// Share of the buckets whose migrations are in memory
    #[arg(long, default_value_t = LsmTrie::default().remembered_share)]
    remembered_share: f64,
    /// Write to a log first
    #[arg(long)]
    log: bool,
    /// Garbage share at which a last-level container is collected; 0 when keys are only inserted
    #[arg(long, default_value_t = 0.0)]
    garbage_share: f64,
    #[command(flatten)]
    wear: WearOptions,
}

/// The kind of directory.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Design {
    Base,
    Enhanced,
}

/// Options of `skimpystash`.
#[derive(Clone, Debug, clap::Args)]
pub struct SkimpyStashOptions {
    #[command(flatten)]
    keys: KeyOptions,
    /// base: one pointer per slot; enhanced: the shorter of two chains, with a Bloom filter per slot
    #[arg(long, value_enum, default_value = "base")]
    design: Design,
    /// k: keys per slot
    #[arg(long, default_value_t = 10.0)]
    chain_length: f64,
    /// m: records that compaction puts on a page; 1 for no compaction
    #[arg(long, default_value_t = 1.0)]
    records_per_page: f64,
    /// Garbage share at which the log is cleaned, under updates; 0 when keys are only inserted
    #[arg(long, default_value_t = 0.0)]
    garbage_share: f64,
    /// Bytes of a pointer
    #[arg(long, default_value_t = 4.0)]
    pointer_bytes: f64,
    /// Bits of Bloom filter per key
    #[arg(long, default_value_t = 8.0)]
    filter_bits: f64,
    /// Bytes of a record
    #[arg(long, default_value_t = 64.0)]
    item_bytes: f64,
    #[command(flatten)]
    wear: WearOptions,
}

impl LevelDbOptions {
    pub fn run(&self) -> Result<Vec<Measurement>, BenchError> {
        let keys = self.keys.distribution()?;
        let wear = self.wear.wear(self.item.item_bytes);
        wear.validate()?;
        let design = LevelDb {
            wal: self.shape.wal,
            level0_tables: self.shape.level0_tables,
            sizes: self.shape.sizes.clone(),
            filter_bits: self.filter_bits,
            index_bytes: self.index_bytes,
        };
        let cost = design.cost(&keys)?;
        let measurement = self.keys.configure(measurement("leveldb"), keys.keys());
        let measurement = measurement
            .config("wal", self.shape.wal)
            .config("level0_tables", self.shape.level0_tables)
            .config("sizes", self.shape.sizes.clone())
            .config("filter_bits", self.filter_bits);
        Ok(vec![add_cost(measurement, &cost, keys.keys(), &wear)])
    }
}

impl StageOptions {
    pub fn run_cola(&self) -> Result<Vec<Measurement>, BenchError> {
        let keys = self.keys.distribution()?;
        let design =
            Cola { wal: self.wal, levels: self.levels, growth: self.growth, index_bytes: self.index_bytes };
        self.report("cola", keys.keys(), &design.cost(&keys)?)
    }

    pub fn run_samt(&self) -> Result<Vec<Measurement>, BenchError> {
        let keys = self.keys.distribution()?;
        let design =
            Samt { wal: self.wal, levels: self.levels, growth: self.growth, index_bytes: self.index_bytes };
        self.report("samt", keys.keys(), &design.cost(&keys)?)
    }

    fn report(&self, name: &str, keys: f64, cost: &Cost) -> Result<Vec<Measurement>, BenchError> {
        let wear = self.wear.wear(self.item.item_bytes);
        wear.validate()?;
        let measurement = self.keys.configure(measurement(name), keys);
        let measurement =
            measurement.config("wal", self.wal).config("levels", self.levels).config("growth", self.growth);
        Ok(vec![add_cost(measurement, cost, keys, &wear)])
    }
}

impl SiltOptions {
    pub fn run(&self) -> Result<Vec<Measurement>, BenchError> {
        let keys = self.keys.distribution()?;
        let wear = self.wear.wear(self.item.item_bytes);
        wear.validate()?;
        let design = Silt {
            table: self.table,
            occupancy: self.occupancy,
            hash_stores: self.hash_stores,
            tag_bits: self.tag_bits,
            sorted_bytes: self.sorted_bytes,
        };
        let cost = design.cost(&keys)?;
        let measurement = self.keys.configure(measurement("silt"), keys.keys());
        let measurement = measurement
            .config("table", self.table)
            .config("occupancy", self.occupancy)
            .config("hash_stores", self.hash_stores)
            .config("tag_bits", self.tag_bits);
        Ok(vec![add_cost(measurement, &cost, keys.keys(), &wear)])
    }
}

impl SiltClosedFormOptions {
    pub fn run(&self) -> Result<Vec<Measurement>, BenchError> {
        if self.skew != 0.0 {
            let hint = "the closed forms are for uniform updates: use `model silt`";
            return Err(BenchError::Usage(hint.to_owned()));
        }
        let wear = self.wear.wear(self.item.item_bytes);
        wear.validate()?;
        let design = SiltClosedForm {
            items: self.keys,
            instances: self.instances,
            merge_items: self.merge_items,
            tag_bits: self.tag_bits,
        };
        let cost = design.cost()?;
        let measurement = measurement("silt-closed-form")
            .config("keys", self.keys)
            .config("instances", self.instances)
            .config("merge_items", self.merge_items)
            .config("tag_bits", self.tag_bits)
            .metric("hash_stores", design.hash_stores());
        Ok(vec![add_cost(measurement, &cost, self.keys, &wear)])
    }
}

impl LsmTrieOptions {
    pub fn run(&self) -> Result<Vec<Measurement>, BenchError> {
        let keys = self.keys.distribution()?;
        let wear = self.wear.wear(self.item_bytes);
        wear.validate()?;
        let design = LsmTrie {
            growth: self.growth,
            runs: self.runs,
            upper_levels: self.upper_levels,
            table_bytes: self.table_bytes,
            fill: self.fill,
            item_bytes: self.item_bytes,
            filter_bits: self.filter_bits,
            bucket_reads: self.bucket_reads,
            remembered_share: self.remembered_share,
            log: self.log,
            garbage_share: self.garbage_share,
        };
        let cost = design.cost(&keys)?;
        let measurement = self.keys.configure(measurement("lsm-trie"), keys.keys());
        let measurement = measurement
            .config("growth", self.growth)
            .config("runs", self.runs)
            .config("upper_levels", self.upper_levels)
            .config("item_bytes", self.item_bytes)
            .config("filter_bits", self.filter_bits)
            .config("log", self.log)
            .config("garbage_share", self.garbage_share);
        let measurement = add_cost(measurement, &cost, keys.keys(), &wear);
        Ok(vec![measurement.metric("false_positive_rate_per_100_runs", design.false_positive_rate(100.0))])
    }
}

impl SkimpyStashOptions {
    pub fn run(&self) -> Result<Vec<Measurement>, BenchError> {
        let keys = self.keys.distribution()?;
        let wear = self.wear.wear(self.item_bytes);
        wear.validate()?;
        let directory = match self.design {
            Design::Base => ChainDirectory::Base,
            Design::Enhanced => ChainDirectory::Enhanced,
        };
        let design = SkimpyStash {
            directory,
            chain_length: self.chain_length,
            records_per_page: self.records_per_page,
            garbage_share: self.garbage_share,
            pointer_bytes: self.pointer_bytes,
            filter_bits: self.filter_bits,
            item_bytes: self.item_bytes,
        };
        let cost = design.cost(&keys)?;
        let measurement = self.keys.configure(measurement("skimpystash"), keys.keys());
        let measurement = measurement
            .config("design", format!("{:?}", self.design).to_lowercase())
            .config("chain_length", self.chain_length)
            .config("records_per_page", self.records_per_page)
            .config("garbage_share", self.garbage_share);
        let measurement = add_cost(measurement, &cost, keys.keys(), &wear);
        Ok(vec![measurement.metric("reads_per_get_published", design.reads_as_published())])
    }
}
