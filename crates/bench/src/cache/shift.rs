//! Space under items of changing sizes: a store is filled with items of one size until it refuses one, half of them are
//! removed at random, and it is filled with items of the next size. An allocator that cannot join the free space
//! between the remaining items fails here because of fragmentation.

use alluvium_cache::{ConcurrentReads, OutOfSpace, Store, StoreWriter, WriteError};

use super::items::wrong;
use super::options::CacheOptions;
use super::speed::{refused, taken};
use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::process::thread_cpu_time;
use crate::random::{Random, mix};
use crate::report::Report;

/// Bytes of the values of each round: the smallest and the largest.
const ROUNDS: [(u64, u64); 10] = [
    (16, 16),
    (1000, 1000),
    (16, 64),
    (4000, 30_000),
    (100, 100),
    (16, 4000),
    (100_000, 100_000),
    (40, 40),
    (500, 600),
    (16, 16),
];
/// Bytes of the smallest item, for which the index is sized.
const PAYLOAD_BYTES_MEAN: usize = 24;
const MEMORY_BYTES: usize = 256 << 20;
/// Bytes that every item takes in the space besides its value: key and header.
const OTHER_BYTES: u64 = 16;

/// Runs all rounds, with items that move and with items that keep their positions.
pub fn run(options: &CacheOptions, report: &mut Report) -> Result<(), BenchError> {
    let limit = options.items.map_or(MEMORY_BYTES, |items| (items as usize * 64).max(1 << 20));
    for keeps_places in [false, true] {
        let builder = Store::builder().memory_limit(limit).payload_bytes_mean(PAYLOAD_BYTES_MEAN);
        let builder = if keeps_places { builder.keep_places() } else { builder };
        let store = builder.build_as::<ConcurrentReads>().map_err(refused)?;
        let store = store.writer(..).map_err(taken)?;
        let mut shift = Shift { store, random: Random::new(options.seed, 0), items: Vec::new(), next: 0 };
        for (number, sizes) in ROUNDS.into_iter().enumerate() {
            report.add(shift.round(number, sizes)?.config("items_move", !keeps_places))?;
        }
    }
    Ok(())
}

struct Shift {
    store: StoreWriter,
    random: Random,
    /// Number of every present item, and bytes of its value.
    items: Vec<(u64, usize)>,
    next: u64,
}

impl Shift {
    /// Fills the store, verifies it, removes half of the items.
    fn round(&mut self, number: usize, (least, most): (u64, u64)) -> Result<Measurement, BenchError> {
        let (before, moved) = (self.items.len(), self.store.stats().moved);
        let mut value = Vec::new();
        let started = thread_cpu_time();
        let (reason, refused_bytes) = loop {
            let len = (least + self.random.below(most - least + 1)) as usize;
            fill(&mut value, self.next, len);
            match self.store.set(&mix(self.next).to_le_bytes(), &value) {
                Ok(()) => self.items.push((self.next, len)),
                Err(WriteError::Refused(reason)) => break (reason, len as u64 + OTHER_BYTES),
                Err(WriteError::OtherPartition(error)) => return Err(BenchError::Usage(error.to_string())),
            }
            self.next += 1;
        };
        let set = (self.items.len() - before).max(1) as f64;
        let set_ns = (thread_cpu_time() - started).as_nanos() as f64 / set;
        let stats = self.store.stats();
        self.verify()?;
        let measurement = Measurement::new("cache", &format!("shift_{}", number + 1))
            .config("value_bytes_min", least)
            .config("value_bytes_max", most)
            .metric("space_used_share", stats.space_bytes_used as f64 / stats.space_bytes as f64)
            .metric("items", stats.items)
            .metric("items_set", set)
            .metric("set_ns", set_ns)
            .metric("moves_per_set", (stats.moved - moved) as f64 / set)
            .metric("refused_bytes", refused_bytes)
            .metric("refused_by_index", reason == OutOfSpace::Index)
            .metric("spare_buckets", stats.spare_buckets_used);
        self.remove_half();
        Ok(measurement)
    }

    /// Reads every item.
    fn verify(&self) -> Result<(), BenchError> {
        let (mut value, mut expected) = (Vec::new(), Vec::new());
        for &(number, len) in &self.items {
            fill(&mut expected, number, len);
            if !self.store.get_into(&mix(number).to_le_bytes(), &mut value) || value != expected {
                return Err(wrong(number));
            }
        }
        if self.store.stats().items != self.items.len() as u64 {
            return Err(BenchError::WrongAnswer("the store counts other items than were set".to_owned()));
        }
        Ok(())
    }

    fn remove_half(&mut self) {
        let Self { store, random, items, .. } = self;
        items.retain(|(number, _)| {
            let stays = random.below(2) == 0;
            if !stays {
                // The writer has all partitions.
                let _ = store.remove(&mix(*number).to_le_bytes());
            }
            stays
        });
    }
}

/// The value of item `number`: bytes determined by the number, so that a mixture of two is detected.
fn fill(value: &mut Vec<u8>, number: u64, len: usize) {
    value.clear();
    value.extend(number.to_le_bytes().into_iter().cycle().take(len));
}
