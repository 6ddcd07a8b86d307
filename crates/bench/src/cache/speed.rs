//! Rates of gets and sets, and the memory that items take.

use std::time::Instant;

use alluvium_cache::{BuildError, Builder, Cache, ClaimError, ConcurrentReads, Store, StoreBuilder};
use alluvium_io::ProcessMemory;

use super::engine::Engine;
use super::options::{AccessMode, CacheOptions, Case, Mode};
use super::raw::{self, RawRates};
use super::worker::{Share, Tally, Worker};
use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::report::Report;

/// Runs all combinations that the options leave open.
pub fn run(options: &CacheOptions, report: &mut Report) -> Result<(), BenchError> {
    for case in options.cases() {
        let limit = raw::measure(&case, options.requests);
        for threads in options.threads.map_or(vec![1, 2], |threads| vec![threads.max(1)]) {
            let run = Run { options, case, limit, threads };
            let partitions = 0..run.partitions();
            let before = resident_bytes();
            match (options.mode, options.access) {
                (Mode::Zexpander | Mode::Tiered, _) => {
                    return Err(BenchError::Usage("this mode has a program of its own".to_owned()));
                }
                #[cfg(target_os = "linux")]
                (Mode::Nvm, _) => {
                    return Err(BenchError::Usage("this mode has a program of its own".to_owned()));
                }
                (Mode::Cache, AccessMode::Exclusive) => {
                    let caches = run.cache().build_exclusive_each(threads).map_err(refused)?;
                    run.measure(caches, before, report)?;
                }
                (Mode::Cache, AccessMode::ConcurrentReads) => {
                    let cache = run.cache().build_concurrent_reads().map_err(refused)?;
                    let writers = partitions.map(|partition| cache.writer(partition..=partition));
                    run.measure(writers.collect::<Result<_, _>>().map_err(taken)?, before, report)?;
                }
                (Mode::Cache, AccessMode::Concurrent) => {
                    let cache = run.cache().build().map_err(refused)?;
                    run.measure(vec![&cache; threads], before, report)?;
                }
                (Mode::Store, AccessMode::Exclusive) => {
                    let stores = run.store().build_exclusive_each(threads).map_err(refused)?;
                    run.measure(stores, before, report)?;
                }
                (Mode::Store, AccessMode::ConcurrentReads) => {
                    let store = run.store().build_as::<ConcurrentReads>().map_err(refused)?;
                    let writers = partitions.map(|partition| store.writer(partition..=partition));
                    run.measure(writers.collect::<Result<_, _>>().map_err(taken)?, before, report)?;
                }
                (Mode::Store, AccessMode::Concurrent) => {
                    let store = run.store().build().map_err(refused)?;
                    run.measure(vec![&store; threads], before, report)?;
                }
            }
        }
    }
    Ok(())
}

/// One shape with one number of threads.
struct Run<'a> {
    options: &'a CacheOptions,
    case: Case,
    limit: RawRates,
    threads: usize,
}

/// The result of loading the items.
struct Loaded {
    sets_per_s: f64,
    items: u64,
    resident_bytes: Option<u64>,
    memory_bytes: u64,
}

impl Run<'_> {
    /// Number of items for which room is requested.
    fn room(&self) -> usize {
        (self.case.items * self.options.room / 100).max(1) as usize
    }

    fn partitions(&self) -> usize {
        if self.options.access == AccessMode::Exclusive { 1 } else { self.threads }
    }

    fn cache(&self) -> Builder {
        let case = &self.case;
        let builder = Cache::builder()
            .payload_bytes_fixed(case.key_bytes + case.value_bytes)
            .eviction(self.options.eviction.eviction());
        let builder = match self.options.access {
            AccessMode::Concurrent => builder.for_threads(self.threads),
            _ => builder.partitions(self.partitions()),
        };
        builder.room_for(self.room())
    }

    fn store(&self) -> StoreBuilder {
        let case = &self.case;
        // Parts chosen by key hash get slightly different numbers of items.
        let parts = if self.options.access == AccessMode::Exclusive { self.threads } else { 1 };
        let spread = (self.room() / parts).isqrt() * 4 * (parts - 1);
        Store::builder()
            .payload_bytes_mean(case.key_bytes + case.value_bytes)
            .partitions(self.partitions())
            .room_for(self.room() + spread * parts)
    }

    /// Which items a thread's worker may touch.
    fn share(&self, thread: usize) -> Share {
        match self.options.access {
            AccessMode::Exclusive => Share::Owner(thread, self.threads),
            AccessMode::ConcurrentReads => Share::Partition(thread),
            AccessMode::Concurrent => Share::All(thread, self.threads),
        }
    }

    /// Measures with one handle per thread.
    fn measure<E: Engine + Send>(
        &self,
        handles: Vec<E>,
        before: Option<u64>,
        report: &mut Report,
    ) -> Result<(), BenchError> {
        let workers = handles.into_iter().enumerate();
        let workers = workers.map(|(thread, handle)| Worker::new(handle, self.case, self.share(thread)));
        let workers = &mut workers.collect::<Vec<_>>();
        let (loading, seconds) = together(workers, |worker| worker.load())?;
        let engines = if self.options.access == AccessMode::Exclusive { workers.len() } else { 1 };
        let sum = |of: fn(&E) -> u64| workers[..engines].iter().map(|worker| of(worker.cache())).sum();
        let loaded = Loaded {
            sets_per_s: loading.requests as f64 / seconds,
            items: sum(E::items),
            resident_bytes: resident_bytes().zip(before).map(|(now, before)| now.saturating_sub(before)),
            memory_bytes: sum(E::memory_bytes),
        };
        let options = self.options;
        for skew in options.skew.map_or(vec![0.0, 0.99], |skew| vec![skew]) {
            for get_ratio in options.get_ratio.map_or(vec![95, 50], |ratio| vec![ratio]) {
                for worker in workers.iter_mut() {
                    worker.draw(options.requests, skew, get_ratio, options.seed)?;
                }
                for batch in options.batch.map_or(vec![1, 32], |batch| vec![batch.max(1)]) {
                    let (tally, seconds) = together(workers, |worker| worker.work(batch))?;
                    report.add(self.measurement(&loaded, skew, get_ratio, batch, tally, seconds))?;
                }
            }
        }
        Ok(())
    }

    fn measurement(
        &self,
        loaded: &Loaded,
        skew: f64,
        get_ratio: u8,
        batch: usize,
        tally: Tally,
        seconds: f64,
    ) -> Measurement {
        let case = &self.case;
        let payload = (case.key_bytes + case.value_bytes) as f64;
        let each = |bytes: u64| bytes as f64 / loaded.items.max(1) as f64;
        let per_cpu_s = tally.requests as f64 / tally.cpu_s;
        let raw = if batch == 1 { self.limit.single_per_s } else { self.limit.batch_per_s };
        let popularity = if skew == 0.0 { "uniform" } else { "zipf" };
        Measurement::new("cache", &format!("{popularity}_{get_ratio}_batch_{batch}"))
            .config("mode", if self.options.mode == Mode::Cache { "cache" } else { "store" })
            .config("items", case.items)
            .config("key_bytes", case.key_bytes)
            .config("value_bytes", case.value_bytes)
            .config("threads", self.threads)
            .config("access", format!("{:?}", self.options.access))
            .config("eviction", format!("{:?}", self.options.eviction))
            .config("room_percent", self.options.room)
            .metric("ops_per_s", tally.requests as f64 / seconds)
            .metric("ops_per_cpu_s", per_cpu_s)
            .metric("raw_limit_per_cpu_s", raw)
            .metric("of_raw_limit", per_cpu_s / raw)
            .metric("miss_ratio", tally.misses as f64 / tally.gets.max(1) as f64)
            .metric("load_sets_per_s", loaded.sets_per_s)
            .metric("items_present", loaded.items)
            .metric("resident_bytes_per_item", loaded.resident_bytes.map(each))
            .metric("overhead_bytes_per_item", loaded.resident_bytes.map(|bytes| each(bytes) - payload))
            .metric("limit_bytes_per_item", each(loaded.memory_bytes))
    }
}

/// Runs all workers at once, each in a thread. Returns the sum of their tallies, and the seconds that it took.
///
/// # Errors
/// The error of the first worker that has one.
pub fn together<W: Send>(
    workers: &mut [W],
    work: impl Fn(&mut W) -> Result<Tally, BenchError> + Sync,
) -> Result<(Tally, f64), BenchError> {
    let started = Instant::now();
    let tallies: Vec<Result<Tally, BenchError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = workers.iter_mut().map(|worker| scope.spawn(|| work(worker))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a worker panicked")).collect()
    });
    let seconds = started.elapsed().as_secs_f64();
    let mut sum = Tally::default();
    for tally in tallies {
        let tally = tally?;
        sum.requests += tally.requests;
        sum.gets += tally.gets;
        sum.misses += tally.misses;
        sum.cpu_s += tally.cpu_s;
        sum.cpu_s_max = sum.cpu_s_max.max(tally.cpu_s_max);
    }
    Ok((sum, seconds))
}

fn resident_bytes() -> Option<u64> {
    ProcessMemory::now().map(|memory| memory.resident_bytes)
}

/// The error for a partition that already has a writer.
pub fn taken(error: ClaimError) -> BenchError {
    BenchError::Usage(error.to_string())
}

/// The error for settings with which no cache or store can be made.
pub fn refused(error: BuildError) -> BenchError {
    BenchError::Usage(error.to_string())
}
