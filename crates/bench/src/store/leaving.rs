//! The phases in which items go away: they expire, are removed, or are overwritten under a snapshot.

use std::time::{Duration, Instant};

use alluvium::{KeyspaceSnapshot, Metadata};

use super::StoreBench;
use super::drive::{Drive, Step};
use super::phases::rate;
use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::random::Random;

/// How long expiring items live: longer than any phase takes. The clock is moved ahead afterwards.
pub(super) const LIFETIME_MS: u64 = 30 * 24 * 3600 * 1000;
/// Number of keys that are read from a snapshot.
const SNAPSHOT_KEYS: u64 = 100_000;
/// Number of removed items that are looked up.
const GONE_KEYS: u64 = 10_000;

impl StoreBench {
    /// Number of the first item that goes away: it and all later ones do.
    fn first_leaving(&self) -> u64 {
        self.workload.items().div_ceil(2)
    }

    /// The metadata with which an item is loaded.
    pub(super) fn metadata(&self, item: u64) -> Metadata {
        let expires_at_ms = self.expires_at_ms.filter(|_| item >= self.first_leaving());
        Metadata { flags: 0, expires_at_ms }
    }

    /// Moves the clock to where the second half of the items has expired, and waits until their space is freed.
    pub(super) fn expire(&self) -> Result<Measurement, BenchError> {
        let before = self.allocated_bytes();
        let left = self.first_leaving();
        let measurement = self.background("expire", |_| {
            self.clock.advance(Duration::from_millis(LIFETIME_MS));
            self.workload.set_live_items(left);
            Ok(())
        })?;
        self.left(measurement, before)
    }

    /// Removes the second half of the items. Rate and latencies are those of the removals alone; writes and space
    /// include settling.
    pub(super) fn delete(&self) -> Result<Measurement, BenchError> {
        let before = self.allocated_bytes();
        let left = self.first_leaving();
        let operations = self.workload.live_items().saturating_sub(left);
        let drive = Drive {
            name: "delete",
            threads: self.options.writers,
            operations,
            deadline: None,
            settles: true,
            inserts: false,
            is_first_come: false,
        };
        self.workload.set_live_items(left.min(self.workload.live_items()));
        let outcome = self.drive(&drive, |worker| {
            let item = left + worker.done * worker.threads + worker.thread;
            self.workload.key(item, &mut worker.key);
            self.keyspace.remove(&worker.key)?;
            Ok(Step::Put)
        })?;
        let measurement = self.write_measurement("delete", &outcome);
        self.left(measurement, before)
    }

    /// Adds what remains, after looking up some of the items that are gone.
    fn left(&self, measurement: Measurement, bytes_before: u64) -> Result<Measurement, BenchError> {
        let (left, items) = (self.workload.live_items(), self.workload.items());
        let mut random = Random::new(self.options.seed, self.next_stream());
        for _ in 0..GONE_KEYS.min(items - left) {
            let mut key = Vec::new();
            self.workload.key(left + random.below(items - left), &mut key);
            if self.keyspace.get(&key)?.is_some() {
                return Err(BenchError::WrongAnswer("an item that has left is present".to_owned()));
            }
        }
        let bytes = self.allocated_bytes();
        Ok(measurement
            .metric("items_left", left)
            .metric("allocated_bytes_before", bytes_before)
            .metric("allocated_bytes", bytes)
            .metric("allocated_to_before", bytes as f64 / bytes_before.max(1) as f64))
    }

    /// Takes a snapshot and reads some keys from it; overwrites every item, and reads the same keys again: the values
    /// must be unchanged. Then drops the snapshot and waits until its space is freed. The rate and latencies are those
    /// of the reads after the overwriting; `snapshot_rate_to_before` compares the rate with that of the reads before.
    pub(super) fn snapshot(&self) -> Result<Measurement, BenchError> {
        let items = self.workload.live_items();
        let bytes_before = self.allocated_bytes();
        let snapshot = self.db.snapshot()?;
        let missing = || BenchError::WrongAnswer("the snapshot lacks the keyspace".to_owned());
        let keyspace = snapshot.keyspace("bench").ok_or_else(missing)?;
        let versions: Vec<u8> = (0..items).map(|item| self.workload.version(item)).collect();
        let read = |name| {
            let operations = SNAPSHOT_KEYS.min(items);
            // Every round reads the same keys.
            let stride = items / operations;
            self.drive(&self.reading(name, operations), |worker| {
                let item = (worker.done * worker.threads + worker.thread) * stride;
                self.check_snapshot(&keyspace, item, versions[item as usize])?;
                Ok(Step::Gets(1))
            })
        };
        let first = read("snapshot")?;
        let overwriting = Drive {
            name: "overwrite",
            threads: self.options.writers,
            operations: items,
            deadline: None,
            settles: true,
            inserts: false,
            is_first_come: false,
        };
        let written = self.drive(&overwriting, |worker| {
            let item = worker.done * worker.threads + worker.thread;
            let version = self.workload.version(item).wrapping_add(1);
            self.workload.key(item, &mut worker.key);
            self.workload.value(item, version, &mut worker.value);
            self.keyspace.insert_with(&worker.key, &worker.value, self.metadata(item))?;
            self.workload.acknowledge(item, version);
            Ok(Step::Put)
        })?;
        let bytes_held = self.allocated_bytes();
        let held = self.db.stats().snapshots;
        let again = read("snapshot")?;
        drop((keyspace, snapshot));
        let dropped = Instant::now();
        self.settle()?;
        let released = dropped.elapsed();
        let bytes_after = self.allocated_bytes();
        let measurement = self
            .measurement("snapshot")
            .metric("ops_per_s", rate(&again))
            .metric("snapshot_rate_to_before", rate(&again) / rate(&first))
            .metric("overwrites_per_s", rate(&written))
            .metric("snapshot_memory_bytes", held.memory)
            .metric("snapshot_disk_bytes", held.disk)
            .metric("snapshot_disk_bytes_after", self.db.stats().snapshots.disk)
            .metric("allocated_bytes_before", bytes_before)
            .metric("allocated_bytes_held", bytes_held)
            .metric("allocated_bytes", bytes_after)
            .metric("allocated_to_before", bytes_after as f64 / bytes_before.max(1) as f64)
            .metric("release_s", released.as_secs_f64());
        Ok(again.gets.report(measurement))
    }

    fn check_snapshot(&self, keyspace: &KeyspaceSnapshot, item: u64, version: u8) -> Result<(), BenchError> {
        let (mut key, mut right) = (Vec::new(), Vec::new());
        self.workload.key(item, &mut key);
        self.workload.value(item, version, &mut right);
        match keyspace.get(&key)? {
            Some(found) if found == right => Ok(()),
            Some(_) => Err(BenchError::WrongAnswer(format!("the snapshot has another value of item {item}"))),
            None => Err(BenchError::WrongAnswer(format!("the snapshot lacks item {item}"))),
        }
    }
}
