//! One engine's turn: threads that make requests for a while.

use std::thread;
use std::time::{Duration, Instant};

use alluvium_bench::BenchError;
use alluvium_bench::latencies::Latencies;

use super::engine::{Engine, Reader};
use super::tally::{ReadsBefore, Tally};

/// Requests of a thread between two looks at the clock.
const REQUESTS_A_LOOK: u64 = 16;

/// Makes a request of one thread and verifies the answer.
pub type Step<'a> = Box<dyn FnMut(&mut dyn Reader) -> Result<(), BenchError> + Send + 'a>;

/// How long and by how many threads.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    pub threads: usize,
    pub duration: Duration,
    /// Whether each request is timed, which takes some 50 ns.
    pub is_timed: bool,
}

impl Turn {
    /// Lets all threads make requests, thread `i` those of `step_of(i)`.
    ///
    /// # Errors
    /// The first of any thread.
    pub fn read<'a>(
        &self,
        engine: &dyn Engine,
        step_of: impl Fn(usize) -> Result<Step<'a>, BenchError>,
        tally: &mut Tally,
    ) -> Result<(), BenchError> {
        let steps = (0..self.threads).map(step_of).collect::<Result<Vec<_>, _>>()?;
        let before = ReadsBefore::of(engine);
        let outcomes: Vec<Result<Work, BenchError>> = thread::scope(|scope| {
            let threads: Vec<_> =
                steps.into_iter().map(|step| scope.spawn(move || self.read_alone(engine, step))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a thread panicked")).collect()
        });
        let (mut operations, mut per_second) = (0, 0.0);
        for outcome in outcomes {
            let work = outcome?;
            operations += work.operations;
            per_second += work.per_second();
            tally.latencies.add(&work.latencies);
        }
        tally.add(operations, per_second, &before, engine);
        Ok(())
    }

    fn read_alone(&self, engine: &dyn Engine, mut step: Step<'_>) -> Result<Work, BenchError> {
        let mut reader = engine.reader()?;
        self.repeat(|| step(&mut *reader))
    }

    /// Lets the calling thread change items, without a reader that would hold an old state of the engine.
    ///
    /// # Errors
    /// The first.
    pub fn write(
        &self,
        engine: &dyn Engine,
        step: impl FnMut() -> Result<(), BenchError>,
        tally: &mut Tally,
    ) -> Result<(), BenchError> {
        let before = ReadsBefore::of(engine);
        let work = self.repeat(step)?;
        tally.latencies.add(&work.latencies);
        tally.add(work.operations, work.per_second(), &before, engine);
        Ok(())
    }

    fn repeat(&self, mut step: impl FnMut() -> Result<(), BenchError>) -> Result<Work, BenchError> {
        let mut work = Work::default();
        let start = Instant::now();
        while work.elapsed < self.duration {
            for _ in 0..REQUESTS_A_LOOK {
                if self.is_timed {
                    let start = Instant::now();
                    step()?;
                    work.latencies.record(start.elapsed());
                } else {
                    step()?;
                }
                work.operations += 1;
            }
            work.elapsed = start.elapsed();
        }
        Ok(work)
    }
}

/// What one thread did.
#[derive(Default)]
struct Work {
    operations: u64,
    elapsed: Duration,
    latencies: Latencies,
}

impl Work {
    fn per_second(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64()
    }
}
