//! A semi-sorted keyspace whose keys start with the number of a group, and a map in memory that sees the same
//! operations: every answer of the keyspace must agree with it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use alluvium::{Db, Durability, Keyspace, KeyspaceOptions, PrefixRule};
use alluvium_io::DeviceCounters;
use alluvium_model::Plan;

use crate::device::{Device, allocated_bytes};
use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::work_directory::{WorkDirectory, default_parent};

/// Options of a benchmark whose items are in groups.
#[derive(Clone, Debug, clap::Args)]
pub struct GroupsOptions {
    /// How often the input is used, each time as other groups
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub copies: u64,
    /// Operations of each phase after the first
    #[arg(long, default_value_t = 20_000)]
    pub operations: u64,
    /// Storage layout of the keyspace: the name of a plan for semi-sorted keyspaces
    #[arg(long, default_value = "semi-sorted")]
    pub plan: String,
    /// Seed of the operations
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Directory for the database, which gets a subdirectory named after the benchmark. The default is Cargo's
    /// `target` if the current directory has one, else the system's temporary directory
    #[arg(long, default_value_os_t = default_parent())]
    pub dir: PathBuf,
}

/// Bytes of a group's number, big-endian, in front of every key.
pub const GROUP_BYTES: usize = 8;

/// The keyspace and the map to compare with.
#[derive(Debug)]
pub struct Groups {
    db: Db,
    keyspace: Keyspace,
    exact: BTreeMap<Vec<u8>, Vec<u8>>,
    directory: WorkDirectory,
    device: Device,
}

/// The counters before a phase.
#[derive(Debug)]
pub struct Before {
    counters: Option<DeviceCounters>,
    bytes_put: u64,
}

/// The work of a phase: its operations, the items that they concerned, and the time spent in the store alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Calls to the store.
    pub operations: u64,
    /// Items put, found or removed.
    pub items: u64,
    /// Time in these calls, without checks.
    pub elapsed: Duration,
    /// Time of the longest call.
    pub longest: Duration,
}

/// The key of `name` in `group`.
pub fn key(group: u64, name: &[u8]) -> Vec<u8> {
    [&group.to_be_bytes(), name].concat()
}

/// The error for an answer that differs from the map's.
fn wrong(operation: &str, key: &[u8]) -> BenchError {
    BenchError::WrongAnswer(format!("{operation} of {}", key.escape_ascii()))
}

impl Groups {
    /// An empty keyspace called `name` with the named `plan`, in a database of its own in the empty `work`.
    /// [`Groups::check_groups`] requires `lists_groups`.
    ///
    /// # Errors
    /// [`BenchError::Usage`] for an unknown plan; errors of the store.
    pub fn create(
        work: WorkDirectory,
        name: &str,
        plan: &str,
        lists_groups: bool,
    ) -> Result<Self, BenchError> {
        let plan = Plan::named(plan).map_err(|error| BenchError::Usage(error.to_string()))?;
        let db = Db::builder(work.path()).durability(Durability::Buffered).open()?;
        let prefix = PrefixRule::Length { bytes: GROUP_BYTES as u16 };
        let options = KeyspaceOptions::semi_sorted(prefix).with_plan(plan);
        let options = if lists_groups { options.with_listed_prefixes() } else { options };
        let keyspace = db.keyspace_with(name, &options)?;
        let device = Device::of(work.path())?;
        Ok(Self { db, keyspace, exact: BTreeMap::new(), directory: work, device })
    }

    /// All items as they should be.
    pub fn exact(&self) -> &BTreeMap<Vec<u8>, Vec<u8>> {
        &self.exact
    }

    /// The items of a group as they should be.
    pub fn of_group(&self, group: u64) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
        let start = group.to_be_bytes();
        self.exact.range(start.to_vec()..).take_while(move |(key, _)| key.starts_with(&start))
    }

    /// The first key at or after `start`, or else the first of all: an arbitrary key if `start` is random.
    pub fn key_near(&self, start: &[u8]) -> Option<&Vec<u8>> {
        let behind = self.exact.range(start.to_vec()..).next();
        behind.or_else(|| self.exact.iter().next()).map(|(key, _)| key)
    }

    /// Puts an item.
    pub fn insert(&mut self, key: Vec<u8>, value: Vec<u8>, work: &mut Work) -> Result<(), BenchError> {
        let start = Instant::now();
        self.keyspace.insert(&key, &value)?;
        work.add(start.elapsed(), 1);
        self.exact.insert(key, value);
        Ok(())
    }

    /// Removes an item, if present.
    pub fn remove(&mut self, key: &[u8], work: &mut Work) -> Result<(), BenchError> {
        let start = Instant::now();
        self.keyspace.remove(key)?;
        work.add(start.elapsed(), 1);
        self.exact.remove(key);
        Ok(())
    }

    /// Removes `from` and puts what it had under `to`, in one batch.
    pub fn rename(&mut self, from: &[u8], to: Vec<u8>, work: &mut Work) -> Result<(), BenchError> {
        let Some(value) = self.exact.get(from).cloned() else { return Ok(()) };
        let start = Instant::now();
        let mut batch = self.db.batch();
        batch.remove(&self.keyspace, from.to_vec());
        batch.insert(&self.keyspace, to.clone(), value.clone());
        batch.commit()?;
        work.add(start.elapsed(), 1);
        self.exact.remove(from);
        self.exact.insert(to, value);
        Ok(())
    }

    /// Looks up an item.
    pub fn get(&self, key: &[u8], work: &mut Work) -> Result<(), BenchError> {
        let start = Instant::now();
        let answer = self.keyspace.get(key)?;
        work.add(start.elapsed(), u64::from(answer.is_some()));
        if answer.as_ref() == self.exact.get(key) { Ok(()) } else { Err(wrong("get", key)) }
    }

    /// Lists a group: its items by key.
    pub fn list(&self, group: u64, work: &mut Work) -> Result<Vec<alluvium::KeyValue>, BenchError> {
        let start = Instant::now();
        let scan = self.keyspace.scan_prefix(group.to_be_bytes())?;
        let mut answer = scan.collect::<Result<Vec<_>, _>>()?;
        work.add(start.elapsed(), answer.len() as u64);
        answer.sort();
        if answer.iter().map(|(key, value)| (key, value)).eq(self.of_group(group)) {
            Ok(answer)
        } else {
            Err(wrong("list", &group.to_be_bytes()))
        }
    }

    /// Removes a whole group, and checks that it is gone.
    pub fn remove_group(&mut self, group: u64, work: &mut Work) -> Result<(), BenchError> {
        let keys: Vec<_> = self.of_group(group).map(|(key, _)| key.clone()).collect();
        let start = Instant::now();
        self.keyspace.delete_prefix(group.to_be_bytes())?;
        work.add(start.elapsed(), keys.len() as u64);
        keys.iter().for_each(|key| drop(self.exact.remove(key)));
        match self.keyspace.scan_prefix(group.to_be_bytes())?.next() {
            Some(_) => Err(wrong("remove", &group.to_be_bytes())),
            None => Ok(()),
        }
    }

    /// Lists all groups that have items, in order.
    pub fn check_groups(&self, work: &mut Work) -> Result<(), BenchError> {
        let start = Instant::now();
        let listed = self.keyspace.prefixes()?.collect::<Result<Vec<_>, _>>()?;
        work.add(start.elapsed(), listed.len() as u64);
        let mut exact: Vec<&[u8]> = self.exact.keys().map(|key| &key[..GROUP_BYTES]).collect();
        exact.dedup();
        match listed.iter().zip(&exact).find(|(listed, exact)| *listed != *exact) {
            Some((listed, _)) => Err(wrong("list groups", listed)),
            None if listed.len() == exact.len() => Ok(()),
            None => Err(BenchError::WrongAnswer(format!("{} groups, not {}", listed.len(), exact.len()))),
        }
    }

    /// Iterates over all items.
    pub fn check_all(&self, work: &mut Work) -> Result<(), BenchError> {
        let start = Instant::now();
        let mut count = 0;
        for item in self.keyspace.iter() {
            let (key, value) = item?;
            if self.exact.get(&key) != Some(&value) {
                return Err(wrong("iterate", &key));
            }
            count += 1;
        }
        work.add(start.elapsed(), count);
        if count == self.exact.len() as u64 {
            Ok(())
        } else {
            Err(BenchError::WrongAnswer(format!("{count} items, not {}", self.exact.len())))
        }
    }

    /// Reads the device's counters.
    pub fn before(&self) -> Before {
        Before { counters: self.device.settled_counters(), bytes_put: self.db.stats().traffic.bytes_put }
    }

    /// Moves what the phase wrote from the log to tables, and adds the results: rates of the operations alone; reads
    /// and writes of the device, memory and space of the store including the settling. Numbers of the device are
    /// omitted if the system has none.
    ///
    /// # Errors
    /// Those of the store.
    pub fn measured(
        &self,
        measurement: Measurement,
        work: Work,
        before: &Before,
    ) -> Result<Measurement, BenchError> {
        let read = self.device.settled_counters();
        self.db.flush()?;
        self.db.wait_idle()?;
        let seconds = work.elapsed.as_secs_f64().max(1e-9);
        let stats = self.db.stats();
        let finding = stats.memory.finding() as f64;
        let mut measurement = measurement
            .metric("operations", work.operations)
            .metric("items", work.items)
            .metric("ops_per_s", work.operations as f64 / seconds)
            .metric("items_per_s", work.items as f64 / seconds)
            .metric("max_us", work.longest.as_secs_f64() * 1e6)
            .metric("index_bytes_per_item", finding / self.exact.len().max(1) as f64);
        if let (Some(before), Some(read)) = (&before.counters, &read) {
            let reads = read.since(before).reads as f64;
            measurement =
                measurement.metric("device_reads_per_operation", reads / work.operations.max(1) as f64);
        }
        let bytes_put = stats.traffic.bytes_put - before.bytes_put;
        if let (Some(before), Some(now)) = (&before.counters, self.device.settled_counters())
            && bytes_put > 0
        {
            let written = now.since(before).written_bytes as f64;
            measurement = measurement.metric("write_amplification", written / bytes_put as f64);
        }
        Ok(measurement.metric("disk_bytes", allocated_bytes(self.directory.path())))
    }

    /// Closes the database and removes it.
    ///
    /// # Errors
    /// Those of the store and of the file system.
    pub fn discard(self) -> Result<(), BenchError> {
        let Self { db, keyspace, directory, .. } = self;
        drop(keyspace);
        db.close()?;
        Ok(directory.remove()?)
    }
}

impl Work {
    fn add(&mut self, elapsed: Duration, items: u64) {
        self.operations += 1;
        self.items += items;
        self.elapsed += elapsed;
        self.longest = self.longest.max(elapsed);
    }
}
