//! The work whose memory is measured: everything that occupies memory, by many threads in many keyspaces.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use alluvium::{Db, Durability, Error, Iter, Keyspace, KeyspaceOptions, MemoryStats, PrefixRule, Snapshot};
use alluvium_io::ProcessMemory;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Number of different keys used per keyspace.
const KEYS: u32 = 3_000;
/// Number of iterators that each thread keeps open, and of snapshots that all threads keep together.
const OPEN_ITERATORS: usize = 2;
const OPEN_SNAPSHOTS: usize = 4;

/// The memory and work of a process.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Maximum number of resident bytes seen, minus the process's memory before it opened the database.
    pub resident: u64,
    /// The database's own account at that time.
    pub counted: MemoryStats,
    pub operations: u64,
    /// Operations that were refused because of too little memory.
    pub refused: u64,
    /// Duration of the opening.
    pub opening: Duration,
}

fn open(directory: &Path, limit: u64) -> Result<Db, Error> {
    Db::builder(directory).durability(Durability::Buffered).memory_bytes_max(limit).open()
}

/// Opens the keyspaces; every eighth keeps prefixes together.
fn keyspaces(db: &Db, count: usize) -> Result<Vec<Keyspace>, Error> {
    let rule = || KeyspaceOptions::semi_sorted(PrefixRule::Delimiter { byte: b'/' });
    let open = |number: usize| match number % 8 {
        0 => db.keyspace_with(&format!("keyspace-{number}"), &rule()),
        _ => db.keyspace(&format!("keyspace-{number}")),
    };
    (0..count).map(open).collect()
}

/// Calls `body` and samples the memory of the process during the call.
fn sampled(db: &Db, body: impl FnOnce() -> Result<(), Error>) -> Result<Outcome, Error> {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut peak = Outcome::default();
            while !is_done.load(Ordering::Relaxed) {
                let resident = ProcessMemory::now().map_or(0, |memory| memory.resident_bytes);
                if resident > peak.resident {
                    peak = Outcome { resident, counted: db.stats().memory, ..peak };
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            peak
        });
        let outcome = body();
        is_done.store(true, Ordering::Relaxed);
        let peak = sampler.join().expect("the sampler does not panic");
        outcome.map(|()| peak)
    })
}

/// Writes and reads for some time.
pub fn work(
    directory: &Path,
    limit: u64,
    count: usize,
    threads: usize,
    time: Duration,
) -> Result<Outcome, Error> {
    let db = open(directory, limit)?;
    let keyspaces = keyspaces(&db, count)?;
    let (operations, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let snapshots: Mutex<VecDeque<Snapshot>> = Mutex::default();
    let end = Instant::now() + time;
    let peak = sampled(&db, || {
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|number| {
                    let (db, keyspaces, snapshots) = (&db, &keyspaces, &snapshots);
                    let (operations, refused) = (&operations, &refused);
                    scope.spawn(move || {
                        let mut worker = Worker::new(db, keyspaces, snapshots, number as u64);
                        while Instant::now() < end {
                            match worker.step() {
                                Err(Error::MemoryBusy { .. }) => {
                                    refused.fetch_add(1, Ordering::Relaxed);
                                    worker.iterators.clear();
                                }
                                outcome => outcome?,
                            }
                            operations.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(())
                    })
                })
                .collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
        })
    })?;
    snapshots.lock().expect("no panic while held").clear();
    drop(keyspaces);
    db.close()?;
    Ok(Outcome { operations: operations.into_inner(), refused: refused.into_inner(), ..peak })
}

/// Opens the database again, and reads a part of each keyspace with many threads.
pub fn reopen(directory: &Path, limit: u64, count: usize, threads: usize) -> Result<Outcome, Error> {
    let start = Instant::now();
    let db = open(directory, limit)?;
    let opening = start.elapsed();
    let (operations, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let peak = sampled(&db, || {
        let keyspaces = keyspaces(&db, count)?;
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..threads)
                .map(|first| {
                    let (keyspaces, operations, refused) = (&keyspaces, &operations, &refused);
                    scope.spawn(move || {
                        for number in (first..count).step_by(threads) {
                            for key in (0..KEYS).step_by(10) {
                                keyspaces[number].get(self::key(key))?;
                                operations.fetch_add(1, Ordering::Relaxed);
                            }
                            let mut items = keyspaces[number].iter().take(500);
                            match items.try_for_each(|item| item.map(drop)) {
                                Err(Error::MemoryBusy { .. }) => {
                                    refused.fetch_add(1, Ordering::Relaxed);
                                }
                                outcome => outcome?,
                            }
                        }
                        Ok(())
                    })
                })
                .collect();
            readers.into_iter().try_for_each(|reader| reader.join().expect("no reader panics"))
        })
    })?;
    Ok(Outcome { operations: operations.into_inner(), refused: refused.into_inner(), opening, ..peak })
}

fn key(number: u32) -> String {
    format!("{}/{number}", number % 40)
}

/// One thread.
struct Worker<'a> {
    db: &'a Db,
    keyspaces: &'a [Keyspace],
    snapshots: &'a Mutex<VecDeque<Snapshot>>,
    random: StdRng,
    iterators: VecDeque<Iter>,
    cursor: (usize, u64),
}

impl<'a> Worker<'a> {
    fn new(
        db: &'a Db,
        keyspaces: &'a [Keyspace],
        snapshots: &'a Mutex<VecDeque<Snapshot>>,
        seed: u64,
    ) -> Self {
        let random = StdRng::seed_from_u64(seed);
        Self { db, keyspaces, snapshots, random, iterators: VecDeque::new(), cursor: (0, 0) }
    }

    fn step(&mut self) -> Result<(), Error> {
        let number = self.random.random_range(0..self.keyspaces.len());
        let items = &self.keyspaces[number];
        let key_of = self.random.random_range(0..KEYS);
        match self.random.random_range(0..1_000) {
            0..600 => items.insert(key(key_of), vec![key_of as u8; key_of as usize % 300])?,
            600..850 => drop(items.get(key(key_of))?),
            850..870 => items.remove(key(key_of))?,
            870..930 => {
                let keys: Vec<_> = (0..64).map(|step| key((key_of + step * 37) % KEYS)).collect();
                items.multi_get(&keys)?;
            }
            930..935 => items.insert(key(key_of), vec![1; self.random.random_range(4_000..40_000)])?,
            935..950 if number.is_multiple_of(8) => {
                let found = items.scan_prefix(format!("{}", key_of % 40))?;
                found.take(100).try_for_each(|item| item.map(drop))?;
            }
            935..970 => {
                let (number, cursor) = self.cursor;
                let (_, next) = self.keyspaces[number].scan(cursor, 50)?;
                self.cursor = if next == 0 {
                    (self.random.random_range(0..self.keyspaces.len()), 0)
                } else {
                    (number, next)
                };
            }
            970..995 => self.iterate(number)?,
            995..998 => self.read_snapshot(number, key_of)?,
            _ if self.random.random_range(0..100) == 0 => self.take_snapshot()?,
            _ => {}
        }
        Ok(())
    }

    /// Continues reading with an open iterator, and opens another.
    fn iterate(&mut self, number: usize) -> Result<(), Error> {
        if let Some(mut open) = self.iterators.pop_front() {
            if self.iterators.len() + 1 >= OPEN_ITERATORS {
                return open.by_ref().take(50).try_for_each(|item| item.map(drop));
            }
            self.iterators.push_back(open);
        }
        let mut iterator = self.keyspaces[number].iter();
        iterator.by_ref().take(50).try_for_each(|item| item.map(drop))?;
        self.iterators.push_back(iterator);
        Ok(())
    }

    fn read_snapshot(&mut self, number: usize, key_of: u32) -> Result<(), Error> {
        let snapshot = self.snapshots.lock().expect("no panic while held").front().cloned();
        let items = snapshot.and_then(|snapshot| snapshot.keyspace(self.keyspaces[number].name()));
        items.map_or(Ok(()), |items| items.get(key(key_of)).map(drop))
    }

    fn take_snapshot(&mut self) -> Result<(), Error> {
        let snapshot = self.db.snapshot()?;
        let mut snapshots = self.snapshots.lock().expect("no panic while held");
        if snapshots.len() >= OPEN_SNAPSHOTS {
            snapshots.pop_front();
        }
        snapshots.push_back(snapshot);
        Ok(())
    }
}
