//! The phases, except `sustain`.

use std::time::Instant;

use alluvium::Db;

use super::drive::{Drive, Outcome, Step, Worker};
use super::{StoreBench, probe};
use crate::error::BenchError;
use crate::measurement::Measurement;

impl StoreBench {
    /// Puts every item once. Rate and latencies are those of the puts alone; CPU, writes and space include settling.
    pub(super) fn load(&self) -> Result<Measurement, BenchError> {
        let drive = Drive {
            name: "load",
            threads: self.options.writers,
            operations: self.workload.items(),
            deadline: None,
            settles: true,
            inserts: true,
            is_first_come: false,
        };
        let outcome = self.drive(&drive, |worker| {
            let item = worker.done * worker.threads + worker.thread;
            self.workload.key(item, &mut worker.key);
            self.workload.value(item, 0, &mut worker.value);
            self.keyspace.insert_with(&worker.key, &worker.value, self.metadata(item))?;
            Ok(Step::Put)
        })?;
        Ok(self.write_measurement("load", &outcome))
    }

    /// Ingests every item once. The last operation installs them all.
    pub(super) fn ingest(&self) -> Result<Measurement, BenchError> {
        let drive = Drive {
            name: "ingest",
            threads: 1,
            operations: self.workload.items(),
            deadline: None,
            settles: true,
            inserts: true,
            is_first_come: false,
        };
        let ingest = std::sync::Mutex::new(Some(self.keyspace.ingest()?));
        let outcome = self.drive(&drive, |worker| {
            self.workload.key(worker.done, &mut worker.key);
            self.workload.value(worker.done, 0, &mut worker.value);
            let mut taken = ingest.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let open = taken.as_mut().expect("it is finished after the last item");
            open.insert_with(&worker.key, &worker.value, self.metadata(worker.done))?;
            if worker.done + 1 == worker.quota
                && let Some(ingest) = taken.take()
            {
                ingest.finish()?;
            }
            Ok(Step::Put)
        })?;
        Ok(self.write_measurement("ingest", &outcome))
    }

    /// Overwrites uniformly chosen items, as many as there are items.
    pub(super) fn update(&self) -> Result<Measurement, BenchError> {
        let drive = Drive {
            name: "update",
            threads: self.options.writers,
            operations: self.workload.items(),
            deadline: None,
            settles: true,
            inserts: false,
            is_first_come: false,
        };
        let outcome = self.drive(&drive, |worker| self.overwrite(worker))?;
        Ok(self.write_measurement("update", &outcome))
    }

    /// Overwrites one of the worker's own items with its next version.
    pub(super) fn overwrite(&self, worker: &mut Worker) -> Result<Step, BenchError> {
        let item = worker.own_item(self.workload.live_items());
        let version = self.workload.version(item).wrapping_add(1);
        self.workload.key(item, &mut worker.key);
        self.workload.value(item, version, &mut worker.value);
        self.keyspace.insert(&worker.key, &worker.value)?;
        self.workload.acknowledge(item, version);
        Ok(Step::Put)
    }

    /// Gets uniformly chosen items.
    pub(super) fn get(&self) -> Result<Measurement, BenchError> {
        self.beside_raw_reads("get", self.options.read_wait.all(), |operations| {
            let drive = Drive { is_first_come: true, ..self.reading("get", operations) };
            self.drive(&drive, |worker| {
                self.get_batch(worker, |worker| worker.random.below(self.workload.live_items()))
            })
        })
    }

    /// Gets every item once.
    pub(super) fn all(&self) -> Result<Measurement, BenchError> {
        let outcome = self.drive(&self.reading("all", self.workload.live_items()), |worker| {
            let first = worker.done;
            let mut place = 0;
            self.get_batch(worker, |worker| {
                place += 1;
                (first + place - 1) * worker.threads + worker.thread
            })
        })?;
        Ok(self.read_measurement("all", &outcome))
    }

    /// Gets absent keys.
    pub(super) fn miss(&self) -> Result<Measurement, BenchError> {
        let drive = self.reading("miss", self.options.operations());
        let outcome = self.drive(&drive, |worker| self.miss_batch(worker))?;
        Ok(self.read_measurement("miss", &outcome))
    }

    /// Gets and overwrites at the same time.
    pub(super) fn mixed(&self) -> Result<Measurement, BenchError> {
        let drive = Drive { settles: true, ..self.reading("mixed", self.options.operations()) };
        let outcome = self.drive(&drive, |worker| self.get_or_overwrite(worker))?;
        let measurement = self.read_measurement("mixed", &outcome);
        Ok(measurement
            .metric("get_ratio", self.options.get_ratio)
            .metric("put_p99_us", outcome.puts.quantile_us(0.99))
            .metric("put_p999_us", outcome.puts.quantile_us(0.999))
            .metric("put_max_ms", outcome.puts.max_ms())
            .metric("settle_s", outcome.settling.as_secs_f64()))
    }

    /// Gets any item, or overwrites one of the worker's own, in the proportion that the options set.
    pub(super) fn get_or_overwrite(&self, worker: &mut Worker) -> Result<Step, BenchError> {
        let share = worker.random.below(1 << 32) as f64 / (1_u64 << 32) as f64;
        if share >= self.options.get_ratio {
            return self.overwrite(worker);
        }
        let item = worker.random.below(self.workload.live_items());
        self.get_one(worker, item)
    }

    /// Iterates over everything with one thread. Each item must appear once with its value, and nothing else may
    /// appear.
    pub(super) fn scan(&self) -> Result<Measurement, BenchError> {
        let items = self.workload.live_items();
        let seen = vec![0_u64; items.div_ceil(64) as usize];
        let state = std::sync::Mutex::new((self.keyspace.iter(), seen));
        let drive = Drive { threads: 1, ..self.reading("scan", items) };
        let outcome = self.drive(&drive, |_worker| {
            let mut state = state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let (iterator, seen) = &mut *state;
            let wrong = |what: String| Err(BenchError::WrongAnswer(what));
            let Some(entry) = iterator.next() else {
                return wrong("the scan ended before all items were returned".to_owned());
            };
            let (key, value) = entry?;
            let Some(item) = self.workload.item_of(&key).filter(|&item| item < items) else {
                return wrong(format!("the scan returned the key {key:02x?}, which does not exist"));
            };
            self.workload.check(item, self.workload.version(item), Some(&value))?;
            let (word, bit) = ((item / 64) as usize, 1 << (item % 64));
            if seen[word] & bit != 0 {
                return wrong(format!("the scan returned item {item} twice"));
            }
            seen[word] |= bit;
            Ok(Step::Gets(1))
        })?;
        let (mut iterator, _) = state.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        if iterator.next().is_some() {
            return Err(BenchError::WrongAnswer("the scan returned more than all items".to_owned()));
        }
        Ok(self.read_measurement("scan", &outcome))
    }

    /// Background work alone: starts it with `start` and waits for its end.
    pub(super) fn background(
        &self,
        name: &'static str,
        start: impl FnOnce(&Db) -> Result<(), BenchError>,
    ) -> Result<Measurement, BenchError> {
        let begin = Instant::now();
        let drive = Drive { settles: true, ..self.reading(name, 0) };
        let written_before = self.device.settled_counters();
        start(&self.db)?;
        let outcome = self.drive(&drive, |_| Ok(Step::Gets(0)))?;
        let written = written_before
            .zip(self.device.settled_counters())
            .map(|(before, after)| after.since(&before).written_bytes);
        let measurement = self
            .measurement(name)
            .metric("settle_s", begin.elapsed().as_secs_f64())
            .metric("device_write_bytes", written);
        Ok(outcome.samples.report(measurement, self.workload.live_items(), self.workload.item_bytes()))
    }

    /// A rate relative to that of the first phase with this name, if this is a later one.
    fn to_first(&self, case: &str, rate: f64) -> Option<f64> {
        let mut first = self.first_rates.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match first.get(case) {
            Some(first) => Some(rate / first),
            None => {
                first.insert(case.to_owned(), rate);
                None
            }
        }
    }

    pub(super) fn reading(&self, name: &'static str, operations: u64) -> Drive {
        let threads = self.options.threads;
        Drive {
            name,
            threads,
            operations,
            deadline: None,
            settles: false,
            inserts: false,
            is_first_come: false,
        }
    }

    fn batch_of(&self, worker: &Worker) -> u64 {
        (self.options.batch as u64).min(worker.quota - worker.done)
    }

    pub(super) fn get_batch(
        &self,
        worker: &mut Worker,
        mut choose: impl FnMut(&mut Worker) -> u64,
    ) -> Result<Step, BenchError> {
        let count = self.batch_of(worker);
        if count == 1 {
            let item = choose(worker);
            return self.get_one(worker, item);
        }
        let mut wanted = Vec::with_capacity(count as usize);
        let mut keys = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let item = choose(worker);
            let mut key = Vec::new();
            self.workload.key(item, &mut key);
            wanted.push((item, self.workload.version(item)));
            keys.push(key);
        }
        for ((item, version), answer) in wanted.into_iter().zip(self.lookup(&keys)?) {
            self.workload.check(item, version, answer.as_deref())?;
        }
        Ok(Step::Gets(count))
    }

    /// Gets a batch of absent keys.
    pub(super) fn miss_batch(&self, worker: &mut Worker) -> Result<Step, BenchError> {
        let count = self.batch_of(worker);
        let keys: Vec<Vec<u8>> = (0..count)
            .map(|_| {
                let mut key = Vec::new();
                self.workload.absent_key(worker.random.next_u64(), &mut key);
                key
            })
            .collect();
        let answers = self.lookup(&keys)?;
        if answers.iter().any(Option::is_some) {
            return Err(BenchError::WrongAnswer("a key that was never put is present".to_owned()));
        }
        Ok(Step::Gets(count))
    }

    fn get_one(&self, worker: &mut Worker, item: u64) -> Result<Step, BenchError> {
        let version = self.workload.version(item);
        self.workload.key(item, &mut worker.key);
        let answer = self.keyspace.get(&worker.key)?;
        self.workload.check(item, version, answer.as_deref())?;
        Ok(Step::Gets(1))
    }

    /// One get, or one multi_get if `--batch` requests it.
    fn lookup(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, BenchError> {
        if self.options.batch == 1 {
            return keys.iter().map(|key| Ok(self.keyspace.get(key)?)).collect();
        }
        let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let answers = self.keyspace.multi_get(&slices)?;
        if answers.len() != keys.len() {
            let what = format!("multi_get answered {} of {} keys", answers.len(), keys.len());
            return Err(BenchError::WrongAnswer(what));
        }
        Ok(answers)
    }

    /// The results that writing phases report.
    pub(super) fn write_measurement(&self, case: &str, outcome: &Outcome) -> Measurement {
        let put_bytes = (outcome.operations * self.workload.item_bytes()) as f64;
        let written = outcome.device.map(|device| device.written_bytes as f64 / put_bytes);
        let engine = probe::bytes_written(&outcome.stats.1) - probe::bytes_written(&outcome.stats.0);
        let measurement = self
            .measurement(case)
            .metric("ops_per_s", rate(outcome))
            .metric("settle_s", outcome.settling.as_secs_f64())
            .metric("cpu_us_per_op", cpu_us_per_op(outcome))
            .metric("write_amplification", written)
            .metric("engine_write_amplification", engine as f64 / put_bytes);
        let written = probe::levels_written(&outcome.stats.0, &outcome.stats.1);
        let measurement = written.into_iter().fold(measurement, |measurement, (name, bytes)| {
            measurement.metric(&format!("{name}_write_amplification"), bytes as f64 / put_bytes)
        });
        let measurement = match self.options.young_dir {
            Some(_) => {
                let of = |stats: &alluvium::Stats| stats.traffic.young_directory_bytes_written;
                let young = of(&outcome.stats.1) - of(&outcome.stats.0);
                measurement.metric("young_directory_write_amplification", young as f64 / put_bytes)
            }
            None => measurement,
        };
        let measurement = outcome.puts.report(measurement);
        let measurement = probe::write_waits(measurement, &outcome.stats.0, &outcome.stats.1);
        self.sampled(outcome, measurement)
    }

    pub(super) fn read_measurement(&self, case: &str, outcome: &Outcome) -> Measurement {
        let operations = outcome.operations.max(1) as f64;
        let requests = outcome.device.map(|device| device.reads as f64 / operations);
        let bytes = outcome.device.map(|device| device.read_bytes as f64 / operations);
        let measurement = self
            .measurement(case)
            .metric("ops_per_s", rate(outcome))
            .metric("ops_per_s_to_first", self.to_first(case, rate(outcome)))
            .metric("cpu_us_per_op", cpu_us_per_op(outcome))
            .metric("device_reads_per_get", requests)
            .metric("device_read_bytes_per_get", bytes)
            .metric("engine_reads_per_get", outcome.page_reads as f64 / operations);
        let measurement = outcome.gets.report(measurement);
        self.sampled(outcome, measurement)
    }

    fn sampled(&self, outcome: &Outcome, measurement: Measurement) -> Measurement {
        let measurement = outcome
            .samples
            .report(measurement, self.workload.live_items(), self.workload.item_bytes())
            .metric("harness_bytes", self.workload.memory_bytes() + self.options.latencies_bytes())
            .metric("resident_bytes_before_open", self.resident_bytes_before);
        let (before, after) = (&outcome.stats.0.memory_limit, &outcome.stats.1.memory_limit);
        let Some(limit_bytes) = after.limit_bytes else { return measurement };
        let operations = outcome.operations.max(1) as f64;
        measurement
            .metric("memory_limit_bytes", limit_bytes)
            .metric("filters_dropped", after.filters_dropped - before.filters_dropped)
            .metric("indexes_dropped", after.indexes_dropped - before.indexes_dropped)
            .metric("sections_without_filter", after.sections_without_filter)
            .metric("sections_without_index", after.sections_without_index)
            .metric("index_reads_per_op", (after.index_reads - before.index_reads) as f64 / operations)
            .metric(
                "unfiltered_pages_per_op",
                (after.unfiltered_pages - before.unfiltered_pages) as f64 / operations,
            )
    }
}

/// Operations per second, without settling.
pub(super) fn rate(outcome: &Outcome) -> f64 {
    outcome.operations as f64 / outcome.elapsed.as_secs_f64().max(1e-9)
}

/// CPU time of the whole process per operation, including settling, background threads, and the making and checking of
/// items.
pub(super) fn cpu_us_per_op(outcome: &Outcome) -> f64 {
    outcome.cpu.as_secs_f64() * 1e6 / outcome.operations.max(1) as f64
}
