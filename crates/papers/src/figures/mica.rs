//! What MICA's figures share: throughput of tiny items, for any access mode, skew and mix.
//!
//! The thesis has 16 cores and a network; its results for MICA's data structures alone are in Figure 5.12. Here the
//! data structures are in one process. Rates are per second of CPU time of the busiest thread, which limits the
//! throughput if keys belong to threads and some are requested more often than others.

use alluvium_bench::BenchError;
use alluvium_bench::cache::engine::Engine;
use alluvium_bench::cache::options::Case;
use alluvium_bench::cache::speed::{refused, taken, together};
use alluvium_bench::cache::worker::{Share, Worker};
use alluvium_cache::{Builder, Cache, ConcurrentReads, Eviction, Store};

use super::Scale;

/// Maximum items: the index and the items of 16 million take half a gibibyte, far more than any processor's cache.
const ITEMS_MAX: u64 = 16 << 20;
/// Maximum requests of a thread for each point.
const REQUESTS_MAX: u64 = 4_000_000;
/// Requests per call.
const BATCH: usize = 32;
/// Number of turns; the median counts.
const TURNS: usize = 3;

/// Which threads may read and write what; MICA's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Erew,
    Crew,
    Crcw,
    /// CREW, and nothing is forgotten.
    StoreCrew,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Erew => "EREW",
            Self::Crew => "CREW",
            Self::Crcw => "CRCW",
            Self::StoreCrew => "CREW, store",
        }
    }
}

/// The workload of one point.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    pub skew: f64,
    pub get_percent: u8,
}

/// Million operations per second for each mix, with `threads` threads in one mode.
///
/// # Errors
/// [`BenchError`]: a wrong answer.
pub fn rates(scale: &Scale, mode: Mode, threads: usize, mixes: &[Mix]) -> Result<Vec<f64>, BenchError> {
    let items = scale.simulated_keys_max.clamp(10_000, ITEMS_MAX);
    let case = Case { name: "tiny", items, key_bytes: 8, value_bytes: 8 };
    let run = Run { case, threads, requests: (items / 2).min(REQUESTS_MAX) as usize, seed: scale.seed };
    match mode {
        Mode::Erew => {
            let caches = cache(&case, 1).build_exclusive_each(threads).map_err(refused)?;
            run.measure(caches, |thread| Share::Owner(thread, threads), mixes)
        }
        Mode::Crew => {
            let cache = cache(&case, threads).build_concurrent_reads().map_err(refused)?;
            let writers = (0..threads).map(|partition| cache.writer(partition..=partition));
            run.measure(writers.collect::<Result<_, _>>().map_err(taken)?, Share::Partition, mixes)
        }
        Mode::Crcw => {
            let cache = cache(&case, threads).build().map_err(refused)?;
            run.measure(vec![&cache; threads], |thread| Share::All(thread, threads), mixes)
        }
        Mode::StoreCrew => {
            let builder = Store::builder()
                .payload_bytes_mean(case.key_bytes + case.value_bytes)
                .partitions(threads)
                .room_for(items as usize);
            let store = builder.build_as::<ConcurrentReads>().map_err(refused)?;
            let writers = (0..threads).map(|partition| store.writer(partition..=partition));
            run.measure(writers.collect::<Result<_, _>>().map_err(taken)?, Share::Partition, mixes)
        }
    }
}

/// MICA's cache with its own policy, FIFO.
fn cache(case: &Case, partitions: usize) -> Builder {
    Cache::builder()
        .payload_bytes_mean(case.key_bytes + case.value_bytes)
        .eviction(Eviction::Fifo)
        .partitions(partitions)
        .room_for(case.items as usize * 101 / 100)
}

struct Run {
    case: Case,
    threads: usize,
    requests: usize,
    seed: u64,
}

impl Run {
    /// Rates with one handle per thread.
    fn measure<E: Engine + Send>(
        &self,
        handles: Vec<E>,
        share: impl Fn(usize) -> Share,
        mixes: &[Mix],
    ) -> Result<Vec<f64>, BenchError> {
        let workers = handles.into_iter().enumerate();
        let workers = workers.map(|(thread, handle)| Worker::new(handle, self.case, share(thread)));
        let mut workers: Vec<Worker<E>> = workers.collect();
        together(&mut workers, |worker| worker.load())?;
        let mut rates = Vec::with_capacity(mixes.len());
        for mix in mixes {
            for worker in &mut workers {
                // A worker keeps only the requests that it may make: one in `threads` of all requests, or of the sets.
                let drawn = self.requests * self.threads;
                worker.draw(drawn, mix.skew, mix.get_percent, self.seed)?;
            }
            let mut turns = [0.0; TURNS];
            for turn in &mut turns {
                let (tally, _) = together(&mut workers, |worker| worker.work(BATCH))?;
                *turn = tally.requests as f64 / tally.cpu_s_max / 1e6;
            }
            turns.sort_by(f64::total_cmp);
            rates.push(turns[TURNS / 2]);
        }
        Ok(rates)
    }
}
