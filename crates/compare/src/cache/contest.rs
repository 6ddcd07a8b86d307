//! One shape: all caches are loaded, then they alternate over every mix of requests.

use alluvium_bench::cache::options::Case;
use alluvium_bench::cache::requests::draw;
use alluvium_bench::cache::worker::{Share, Worker};
use alluvium_bench::process::thread_cpu_time;
use alluvium_bench::{BenchError, Measurement, Report};
use alluvium_io::ProcessMemory;

use super::Options;
use super::ours::Alluvium;
use super::peers::{DashMap, Moka, QuickCache, Segcache};
use super::subject::{Stored, Subject, load, work};

/// Numbers of threads, each of which has a CPU to itself.
const THREADS: [usize; 2] = [1, 2];

/// Our requests per call, in the case with batches.
const BATCH: usize = 32;

/// Before the clock starts, as many additional requests divided by this are made, since the processor's caches still
/// contain the data of the previous cache's turn.
const WARMING: usize = 2;

/// Number of ways in which requests are performed: ours one at a time and in batches, then the others.
const WAYS: usize = 6;

/// Loads all caches and runs every mix.
///
/// # Errors
/// [`BenchError`]: the first wrong answer.
pub fn run<const KEY: usize, V: Stored>(
    options: &Options,
    case: Case,
    report: &mut Report,
) -> Result<(), BenchError> {
    let thread_counts = options.threads.map_or(THREADS.to_vec(), |threads| vec![threads.max(1)]);
    let threads_max = thread_counts.iter().copied().max().unwrap_or(1);
    let mut overheads = Vec::new();
    let ours = loaded(|| Alluvium::new(&case, threads_max), &case, &mut overheads)?;
    let quick = loaded(|| Ok(QuickCache::<KEY, V>::new(&case)), &case, &mut overheads)?;
    let moka = loaded(|| Ok(Moka::<KEY, V>::new(&case)), &case, &mut overheads)?;
    let seg = loaded(|| Ok(Segcache::new(&case)), &case, &mut overheads)?;
    let dash = loaded(|| Ok(DashMap::<KEY, V>::new(&case)), &case, &mut overheads)?;
    let names = [ours.name(), "alluvium_batch_32", quick.name(), moka.name(), seg.name(), dash.name()];
    overheads.insert(1, overheads[0]);

    for threads in thread_counts {
        for (skew, popularity) in [(0.0, "uniform"), (0.99, "zipf")] {
            for get_ratio in [95, 50] {
                let drawn = options.requests + options.requests / WARMING;
                let requests: Vec<Vec<u32>> = (0..threads as u64)
                    .map(|thread| draw(case.items, skew, drawn, get_ratio, options.seed + thread))
                    .collect::<Result<_, _>>()?;
                let mut rates: [Vec<f64>; WAYS] = Default::default();
                let mut misses = [0; WAYS];
                for round in 0..options.rounds.max(1) {
                    for way in (0..WAYS).map(|step| (step + round) % WAYS) {
                        let (rate, missed) = match way {
                            0 => by_all(&requests, |requests| work(&ours, &case, requests)),
                            1 => by_all(&requests, |requests| in_batches(&ours, case, requests)),
                            2 => by_all(&requests, |requests| work(&quick, &case, requests)),
                            3 => by_all(&requests, |requests| work(&moka, &case, requests)),
                            4 => by_all(&requests, |requests| work(&seg, &case, requests)),
                            _ => by_all(&requests, |requests| work(&dash, &case, requests)),
                        }?;
                        rates[way].push(rate);
                        misses[way] += missed;
                    }
                }
                for way in 0..WAYS {
                    let gets =
                        requests.len() * options.requests * options.rounds * usize::from(get_ratio) / 100;
                    report.add(
                        Measurement::new("compare_cache", names[way])
                            .config("shape", case.name)
                            .config("items", case.items)
                            .config("popularity", popularity)
                            .config("get_percent", get_ratio)
                            .config("threads", threads)
                            .metric("ops_per_cpu_s", median(rates[way].clone()))
                            .metric("alluvium_ratio", ratio(&rates[0], &rates[way]))
                            .metric("alluvium_batch_ratio", ratio(&rates[1], &rates[way]))
                            .metric("miss_ratio", misses[way] as f64 / gets.max(1) as f64)
                            .metric("overhead_bytes_per_item", overheads[way]),
                    )?;
                }
            }
        }
    }
    Ok(())
}

/// Makes and loads a cache, and records the bytes that an item takes besides key and value.
fn loaded<S: Subject>(
    make: impl FnOnce() -> Result<S, BenchError>,
    case: &Case,
    overheads: &mut Vec<f64>,
) -> Result<S, BenchError> {
    let before = resident_bytes();
    let subject = make()?;
    load(&subject, case);
    let payload = (case.key_bytes + case.value_bytes) as f64;
    overheads.push((resident_bytes() - before) / case.items as f64 - payload);
    Ok(subject)
}

fn in_batches(ours: &Alluvium, case: Case, requests: &[u32]) -> Result<u64, BenchError> {
    let mut worker = Worker::new(&ours.0, case, Share::All(0, 1));
    worker.set_requests(requests.to_vec());
    worker.work(BATCH).map(|tally| tally.misses)
}

/// Every thread performs its requests, the first of them before the clock starts. Returns operations per second of one
/// thread's CPU time, times the number of threads, and the misses.
fn by_all(
    requests: &[Vec<u32>],
    work: impl Fn(&[u32]) -> Result<u64, BenchError> + Sync,
) -> Result<(f64, u64), BenchError> {
    let outcomes: Vec<Result<(f64, u64), BenchError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = requests
            .iter()
            .map(|requests| {
                let work = &work;
                scope.spawn(move || {
                    let (warming, timed) = requests.split_at(requests.len() / (WARMING + 1));
                    work(warming)?;
                    let started = thread_cpu_time();
                    let misses = work(timed)?;
                    Ok((timed.len() as f64 / (thread_cpu_time() - started).as_secs_f64(), misses))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread panicked")).collect()
    });
    outcomes.into_iter().try_fold((0.0, 0), |(rate, misses), outcome| {
        let (more, missed) = outcome?;
        Ok((rate + more, misses + missed))
    })
}

/// Median of the ratios in all rounds.
fn ratio(ours: &[f64], others: &[f64]) -> f64 {
    median(ours.iter().zip(others).map(|(ours, other)| ours / other).collect())
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn resident_bytes() -> f64 {
    ProcessMemory::now().map_or(f64::NAN, |memory| memory.resident_bytes as f64)
}
