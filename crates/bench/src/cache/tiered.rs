//! A database under one memory limit whose row cache compresses what it would drop, beside one that does not compress:
//! hot rows, compressed rows and flash are three tiers. How many gets each tier answers, beside the model; what a get
//! takes; and how much memory the process takes.
//!
//! With a disk limit the database is a cache itself: it starts empty, a get that finds nothing is followed by a set,
//! and the oldest items are dropped. Every value found is compared with the one that was set.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use alluvium::{Db, Durability, Keyspace, Plan, Stats};
use alluvium_model::KeyDistribution;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::documents::{KEY_BYTES, Maker, key};
use super::items::wrong;
use super::options::CacheOptions;
use super::requests::Zipf;
use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::process::{cpu_time, resident_bytes};
use crate::report::Report;
use crate::work_directory::default_parent;

const SKEW: f64 = 0.99;
/// Bytes of all items for each byte of memory, unless their number is given.
const DATA_PER_MEMORY: u64 = 8;
const SUBDIRECTORY: &str = "alluvium-bench-tiered";
/// Gets between two looks at the clock.
const GETS_PER_LOOK: usize = 256;
/// Time between two measurements of the resident memory.
const SAMPLE_PAUSE: Duration = Duration::from_millis(200);

/// Runs both databases.
///
/// # Errors
/// [`BenchError`]: a wrong value, or settings that are refused.
pub fn run(options: &CacheOptions, report: &mut Report) -> Result<(), BenchError> {
    let maker = Maker::new(options.values.clone())?;
    let payload = (KEY_BYTES + maker.bytes_mean()) as u64;
    let keys = options.items.unwrap_or(options.memory * DATA_PER_MEMORY / payload).max(1);
    let skew = options.skew.unwrap_or(SKEW);
    let zipf = Zipf::new(keys, skew);
    let parent = options.file_dir.clone().unwrap_or_else(default_parent);
    let directory = report.directories().create(&parent, SUBDIRECTORY)?;
    let tiered = Tiered { options, maker: &maker, zipf: &zipf, keys, skew };
    if options.disk_max.is_none() {
        tiered.load(directory.path())?;
    }
    for compresses in [false, true] {
        if options.disk_max.is_some() {
            // Each begins empty.
            std::fs::remove_dir_all(directory.path().join("db")).or_else(|error| {
                if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
            })?;
        }
        report.add(tiered.case(directory.path(), compresses)?)?;
    }
    directory.remove()?;
    Ok(())
}

struct Tiered<'a> {
    options: &'a CacheOptions,
    maker: &'a Maker,
    zipf: &'a Zipf,
    keys: u64,
    skew: f64,
}

/// The process and the database before a measured part.
struct Before {
    stats: Stats,
    began: Instant,
    cpu: Duration,
}

impl Before {
    fn of(db: &Db) -> Self {
        Self { stats: db.stats(), began: Instant::now(), cpu: cpu_time() }
    }
}

impl Tiered<'_> {
    fn open(&self, directory: &Path, compresses: bool) -> Result<(Db, Keyspace), BenchError> {
        let builder = Db::builder(directory.join("db")).durability(Durability::Buffered);
        let mut builder = builder.expected_items(self.keys).memory_bytes_max(self.options.memory);
        if compresses {
            builder = builder.compress_rows(self.options.zone_codec());
        }
        if let Some(bytes) = self.options.disk_max {
            builder = builder.disk_bytes_max(bytes).drop_oldest(true);
        }
        if let Some(name) = &self.options.plan {
            let plan = Plan::named(name).map_err(|error| BenchError::Usage(error.to_string()))?;
            builder = builder.plan(plan);
        }
        let db = builder.open()?;
        let keyspace = db.keyspace("items")?;
        Ok((db, keyspace))
    }

    fn load(&self, directory: &Path) -> Result<(), BenchError> {
        let (db, keyspace) = self.open(directory, false)?;
        let mut value = Vec::new();
        for number in 0..self.keys {
            self.maker.make(number, &mut value);
            keyspace.insert(key(number), &value)?;
        }
        db.flush()?;
        db.wait_idle()?;
        Ok(())
    }

    fn case(&self, directory: &Path, compresses: bool) -> Result<Measurement, BenchError> {
        let resident_before = resident_bytes();
        let (db, keyspace) = self.open(directory, compresses)?;
        // The first part warms up.
        self.drive(&keyspace, 0)?;
        let before = Before::of(&db);
        let is_done = AtomicBool::new(false);
        let (outcome, resident) = thread::scope(|scope| {
            let sampler = scope.spawn(|| {
                let mut most = 0;
                while !is_done.load(Ordering::Relaxed) {
                    most = most.max(resident_bytes());
                    thread::sleep(SAMPLE_PAUSE);
                }
                most
            });
            let outcome = self.drive(&keyspace, 1);
            is_done.store(true, Ordering::Relaxed);
            (outcome, sampler.join().expect("no panic"))
        });
        let (gets, absent) = outcome?;
        let measurement = self.measurement(&db, &before, compresses, gets, absent)?;
        Ok(measurement.metric("resident_bytes_max", resident.saturating_sub(resident_before)))
    }

    /// Gets keys by popularity, in all threads; returns the numbers of gets, and of those that found nothing.
    fn drive(&self, keyspace: &Keyspace, part: u64) -> Result<(u64, u64), BenchError> {
        let threads = self.options.threads.unwrap_or(1).max(1);
        let (gets, absent) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            let threads: Vec<_> = (0..threads as u64)
                .map(|thread| {
                    let seed = self.options.seed ^ (thread << 32) ^ (part << 48);
                    let (gets, absent) = (&gets, &absent);
                    scope.spawn(move || self.work(keyspace, seed, gets, absent))
                })
                .collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })?;
        Ok((gets.into_inner(), absent.into_inner()))
    }

    fn work(
        &self,
        keyspace: &Keyspace,
        seed: u64,
        gets: &AtomicU64,
        absent: &AtomicU64,
    ) -> Result<(), BenchError> {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut value = Vec::new();
        let end = self.options.soak.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let mut done = 0;
        while end.map_or(done < self.options.requests, |end| Instant::now() < end) {
            for _ in 0..GETS_PER_LOOK {
                // Popularity is independent of the order in which keys were set.
                let number = (u64::from(self.zipf.draw(&mut random)) * 0x9e37_79b1 + 17) % self.keys;
                self.maker.make(number, &mut value);
                match keyspace.get_with(key(number), |found| found == value)? {
                    Some(true) => {}
                    Some(false) => return Err(wrong(number)),
                    None if self.options.disk_max.is_some() => {
                        absent.fetch_add(1, Ordering::Relaxed);
                        keyspace.insert(key(number), &value)?;
                    }
                    None => return Err(wrong(number)),
                }
            }
            done += GETS_PER_LOOK;
            gets.fetch_add(GETS_PER_LOOK as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    fn measurement(
        &self,
        db: &Db,
        before: &Before,
        compresses: bool,
        gets: u64,
        absent: u64,
    ) -> Result<Measurement, BenchError> {
        let stats = db.stats();
        let (taken, cpu) = (before.began.elapsed(), cpu_time() - before.cpu);
        let share = |part: u64| part as f64 / gets.max(1) as f64;
        let (rows, traffic) = (&stats.rows, &stats.traffic);
        let (rows_before, traffic_before) = (&before.stats.rows, &before.stats.traffic);
        let compressed_hits = rows.compressed_hits - rows_before.compressed_hits;
        let hits = rows.hits - rows_before.hits;
        let misses = rows.misses - rows_before.misses;
        let written = |traffic: &alluvium::TrafficStats| {
            traffic.log_bytes_written + traffic.hash_bytes_written + traffic.sorted_bytes_written
        };
        let put = traffic.bytes_put - traffic_before.bytes_put;
        let model = KeyDistribution::zipf(self.keys as f64, self.skew).map_err(BenchError::Model)?;
        let hot_rows = rows.rows - rows.compressed_rows;
        let case = if compresses { "compressed" } else { "plain" };
        Ok(Measurement::new("cache", case)
            .config("mode", "tiered")
            .config("codec", if compresses { self.options.zone_codec().to_string() } else { "none".into() })
            .config("keys", self.keys)
            .config("memory_bytes", self.options.memory)
            .config("threads", self.options.threads.unwrap_or(1))
            .metric("gets", gets)
            .metric("gets_per_s", gets as f64 / taken.as_secs_f64())
            .metric("cpu_us_per_get", cpu.as_secs_f64() * 1e6 / gets.max(1) as f64)
            .metric("reads_per_get", share(traffic.page_reads - traffic_before.page_reads))
            .metric("hot_share", share(hits - compressed_hits))
            .metric("hot_share_model", model.cache_hit_share(hot_rows as f64))
            .metric("compressed_share", share(compressed_hits))
            .metric("memory_share", share(hits))
            .metric("memory_share_model", model.cache_hit_share(rows.rows as f64))
            .metric(
                "log_or_filter_share",
                (rows.bytes_max > 0).then(|| share(gets.saturating_sub(hits + misses))),
            )
            .metric("absent_share", share(absent))
            .metric("hot_rows", hot_rows)
            .metric("compressed_rows", rows.compressed_rows)
            .metric("row_bytes", rows.bytes)
            .metric("row_bytes_max", rows.bytes_max)
            .metric("written_per_byte_put", {
                let bytes = written(traffic) - written(traffic_before);
                (put > 0).then(|| bytes as f64 / put as f64)
            })
            .metric("table_bytes", stats.levels.iter().map(|level| level.bytes).sum::<u64>())
            .metric("items_dropped", stats.oldest_items_dropped - before.stats.oldest_items_dropped))
    }
}
