//! A semi-sorted keyspace.

use std::path::Path;

use alluvium::{Db, Durability, Keyspace, KeyspaceOptions, Plan, PrefixRule};
use alluvium_bench::{BenchError, Measurement};

use super::{Options, Subject};

pub struct Alluvium {
    db: Db,
    items: Keyspace,
}

impl Alluvium {
    pub fn open(path: &Path, options: &Options) -> Result<Self, BenchError> {
        let plan = Plan::named(&options.plan).map_err(|error| BenchError::Usage(error.to_string()))?;
        let db =
            Db::builder(path).durability(Durability::Buffered).memory_bytes_max(options.memory).open()?;
        let prefix = PrefixRule::Length { bytes: 8 };
        let items = db.keyspace_with("items", &KeyspaceOptions::semi_sorted(prefix).with_plan(plan))?;
        Ok(Self { db, items })
    }
}

impl Subject for Alluvium {
    fn name(&self) -> &'static str {
        "alluvium"
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        Ok(self.items.insert(key, value)?)
    }

    fn settle(&mut self) -> Result<(), BenchError> {
        self.db.flush()?;
        Ok(self.db.wait_idle()?)
    }

    fn scan(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), BenchError> {
        for item in self.items.scan_prefix(prefix)? {
            let (key, value) = item?;
            visit(&key, &value);
        }
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        self.db.stats().memory.total()
    }

    fn add_figures(&self, measurement: Measurement) -> Measurement {
        let stats = self.db.stats();
        let tables = stats.levels.iter().map(|level| level.tables).sum::<usize>();
        measurement.metric("tables", tables)
    }
}
