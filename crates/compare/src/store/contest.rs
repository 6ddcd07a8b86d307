//! The opened engines of a work, which take turns.

use std::sync::atomic::{AtomicU64, Ordering};

use alluvium_bench::{BenchError, WorkDirectories, WorkDirectory};

use super::Options;
use super::engine::{Engine, Reader, Settings};
use super::items::Key;
use super::kind::Kind;
use super::tally::Tally;

/// Maximum items and bytes that are put at once while an engine is filled.
const CHUNK_ITEMS: usize = 1_000;
const CHUNK_BYTES: usize = 4 << 20;

/// A work in progress.
pub struct Contest<'a> {
    pub options: &'a Options,
    work: &'a str,
    engines: Vec<Opened>,
}

/// An engine in its directory.
pub struct Opened {
    pub kind: Kind,
    pub engine: Box<dyn Engine>,
    pub directory: WorkDirectory,
    /// Number of changes made since it was filled.
    changes: AtomicU64,
}

impl Opened {
    /// The number of the next change, from 0.
    pub fn next_change(&self) -> u64 {
        self.changes.fetch_add(1, Ordering::Relaxed)
    }
}

/// What a work makes of each engine.
pub type Results<T> = Vec<(Kind, T)>;

impl<'a> Contest<'a> {
    /// Opens empty engines, the given ones that are asked for.
    ///
    /// # Errors
    /// Those of the engines and the file system.
    pub fn open(
        options: &'a Options,
        directories: &WorkDirectories,
        work: &'a str,
        kinds: impl Fn(Kind) -> bool,
        settings: &Settings,
    ) -> Result<Self, BenchError> {
        let mut engines = Vec::new();
        for &kind in options.engines.iter().filter(|&&kind| kinds(kind)) {
            let directory = directories.create(&options.parent(), kind.name())?;
            let engine = kind.open(directory.path(), settings)?;
            engines.push(Opened { kind, engine, directory, changes: AtomicU64::new(0) });
        }
        Ok(Self { options, work, engines })
    }

    /// Puts the items with these numbers into every engine and settles it.
    ///
    /// # Errors
    /// Those of the engines.
    pub fn fill(&self, items: u64, item_of: impl Fn(u64) -> (Key, Vec<u8>)) -> Result<(), BenchError> {
        for opened in &self.engines {
            self.say(opened.kind, "loads");
            let (mut chunk, mut bytes) = (Vec::new(), 0);
            for number in 0..items {
                let (key, value) = item_of(number);
                bytes += value.len();
                chunk.push((key, value));
                if chunk.len() >= CHUNK_ITEMS || bytes >= CHUNK_BYTES || number + 1 == items {
                    opened.engine.put_all(&chunk)?;
                    chunk.clear();
                    bytes = 0;
                }
            }
            self.say(opened.kind, "settles");
            opened.engine.settle()?;
        }
        Ok(())
    }

    /// Makes the requests with these numbers once of every engine, so that each has in memory what fits.
    ///
    /// # Errors
    /// A wrong answer, and those of the engines.
    pub fn warm(
        &self,
        requests: u64,
        request: impl Fn(&mut dyn Reader, u64) -> Result<(), BenchError> + Sync,
    ) -> Result<(), BenchError> {
        let threads = self.options.threads;
        for Opened { kind, engine, .. } in &self.engines {
            self.say(*kind, "warms up");
            let warm_alone = |thread: usize| -> Result<(), BenchError> {
                let mut reader = engine.reader()?;
                (thread as u64..requests)
                    .step_by(threads)
                    .try_for_each(|number| request(&mut *reader, number))
            };
            std::thread::scope(|scope| {
                let workers: Vec<_> =
                    (0..threads).map(|thread| scope.spawn(move || warm_alone(thread))).collect();
                workers.into_iter().try_for_each(|worker| worker.join().expect("a thread panicked"))
            })?;
        }
        Ok(())
    }

    /// Lets the engines take turns, each once in every round.
    ///
    /// # Errors
    /// The first.
    pub fn by_turns(
        &self,
        what: &str,
        mut turn: impl FnMut(&Opened, u64, &mut Tally) -> Result<(), BenchError>,
    ) -> Result<Results<Tally>, BenchError> {
        let mut tallies: Results<Tally> =
            self.engines.iter().map(|opened| (opened.kind, Tally::default())).collect();
        for round in 0..self.options.rounds.max(1) {
            for step in 0..self.engines.len() {
                let place = (step + round) % self.engines.len();
                self.say(self.engines[place].kind, what);
                turn(&self.engines[place], round as u64, &mut tallies[place].1)?;
            }
        }
        Ok(tallies)
    }

    /// All engines, one after the other.
    ///
    /// # Errors
    /// The first.
    pub fn each<T>(
        &self,
        what: &str,
        mut work: impl FnMut(&Opened) -> Result<T, BenchError>,
    ) -> Result<Results<T>, BenchError> {
        let each = |opened: &Opened| {
            self.say(opened.kind, what);
            work(opened).map(|result| (opened.kind, result))
        };
        self.engines.iter().map(each).collect()
    }

    /// Closes the engines and removes their directories.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn close(self) -> Result<(), BenchError> {
        for Opened { engine, directory, .. } in self.engines {
            drop(engine);
            directory.remove()?;
        }
        Ok(())
    }

    fn say(&self, kind: Kind, what: &str) {
        eprintln!("{}: {} {what}", self.work, kind.name());
    }
}
