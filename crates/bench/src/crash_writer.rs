//! A writer that is meant to be killed: it makes synced writes, prints when each starts and when it is acknowledged,
//! and provides the check for the process that survives it.
//!
//! Used by the test that kills a real process; that test finds what a simulated disk cannot: wrong assumptions about
//! the operating system.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use alluvium::{Db, Durability, Keyspace};

use crate::error::BenchError;
use crate::random::Random;

/// Options of the hidden command `bench crash-writer`.
#[derive(Clone, Debug, clap::Args)]
pub struct CrashWriterOptions {
    /// Directory of the database
    pub directory: PathBuf,
    /// Number of the run; later runs must have higher ones, since versions grow with it
    #[arg(long)]
    pub round: u32,
    /// When a write is acknowledged: process or sync
    #[arg(long, default_value = "sync", value_parser = ["process", "sync"])]
    pub durability: String,
    /// Writing threads; each has its own items
    #[arg(long, default_value_t = 4)]
    pub threads: u64,
    /// Items of each thread
    #[arg(long, default_value_t = 500)]
    pub items: u64,
    /// Seed of the choices
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// The keyspace that it writes to.
pub const KEYSPACE: &str = "crash";

/// Writes of one thread between two freezes of the log, so that kills also hit conversions and the manifest.
const WRITES_PER_FLUSH: u64 = 700;

/// A write, in progress or acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The item.
    pub item: u64,
    /// Its version; later versions of an item are greater.
    pub version: u64,
    /// Whether the item is removed.
    pub is_removal: bool,
}

impl Write {
    fn line(self, moment: &str) -> String {
        let what = if self.is_removal { "remove" } else { "put" };
        format!("{what} {} {} {moment}\n", self.item, self.version)
    }
}

/// What the database may contain, according to the writer's output.
#[derive(Clone, Debug, Default)]
pub struct Expectation {
    acknowledged: HashMap<u64, Write>,
    in_progress: HashMap<u64, Write>,
}

impl Expectation {
    /// Processes a line of the writer's output; a line that the kill truncated is ignored.
    pub fn take(&mut self, line: &str) {
        let mut words = line.split(' ');
        let is_removal = words.next() == Some("remove");
        let mut number = || words.next().and_then(|word| word.parse().ok());
        let (Some(item), Some(version)) = (number(), number()) else { return };
        let write = Write { item, version, is_removal };
        match words.next() {
            Some("begin") => {
                self.in_progress.insert(item, write);
            }
            Some("end") => {
                self.in_progress.remove(&item);
                self.acknowledged.insert(item, write);
            }
            _ => {}
        }
    }

    /// Number of items with an acknowledged write.
    pub fn acknowledged_items(&self) -> usize {
        self.acknowledged.len()
    }

    /// Opens the database after a kill and checks each item: it must be as its last acknowledged write left it, or as
    /// the write in progress would have left it. What was found counts as acknowledged from then on.
    ///
    /// # Errors
    /// A lost, resurrected, older or damaged item is a wrong answer.
    pub fn check(&mut self, directory: &Path) -> Result<(), BenchError> {
        let db = Db::open(directory)?;
        let keyspace = db.keyspace(KEYSPACE)?;
        let items: BTreeSet<u64> = self.acknowledged.keys().chain(self.in_progress.keys()).copied().collect();
        for item in items {
            let found = keyspace.get(key(item))?;
            let (last, pending) = (self.acknowledged.get(&item), self.in_progress.remove(&item));
            if let Some(write) = pending.filter(|write| is_result(found.as_deref(), Some(write))) {
                self.acknowledged.insert(item, write);
            } else if !is_result(found.as_deref(), last) {
                let version =
                    found.as_deref().and_then(|value| value.first_chunk()).map(|v| u64::from_le_bytes(*v));
                return Err(BenchError::WrongAnswer(format!(
                    "acknowledged {last:?}, in progress {pending:?}, found version {version:?} in {} bytes",
                    found.map_or(0, |value| value.len())
                )));
            }
        }
        drop(keyspace);
        db.close()?;
        Ok(())
    }
}

/// Whether `found` is the result of `write`; without a write there must be no item.
fn is_result(found: Option<&[u8]>, write: Option<&Write>) -> bool {
    match write {
        Some(write) if !write.is_removal => found == Some(&value(write.item, write.version)),
        _ => found.is_none(),
    }
}

/// Writes until it is killed or standard output is closed.
pub fn run(options: &CrashWriterOptions) -> Result<(), BenchError> {
    if options.threads == 0 || options.items == 0 {
        return Err(BenchError::Usage("--threads and --items must be at least 1".to_owned()));
    }
    let durability = if options.durability == "process" { Durability::Process } else { Durability::Sync };
    let db = Db::builder(&options.directory).durability(durability).open()?;
    let keyspace = db.keyspace(KEYSPACE)?;
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for thread in 0..options.threads {
            let (db, keyspace, failure) = (&db, &keyspace, &failure);
            scope.spawn(move || {
                if let Err(error) = write_until_killed(options, thread, db, keyspace) {
                    *failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(error);
                }
            });
        }
    });
    match failure.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        Some(BenchError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Some(error) => Err(error),
        None => Ok(()),
    }
}

fn write_until_killed(
    options: &CrashWriterOptions,
    thread: u64,
    db: &Db,
    keyspace: &Keyspace,
) -> Result<(), BenchError> {
    let mut random = Random::new(options.seed, u64::from(options.round) << 32 | thread);
    for write in 0.. {
        let item = random.below(options.items) * options.threads + thread;
        let version = u64::from(options.round) << 32 | write;
        let planned = Write { item, version, is_removal: random.below(8) == 0 };
        say(planned, "begin")?;
        if planned.is_removal {
            keyspace.remove(key(item))?;
        } else {
            keyspace.insert(key(item), value(item, version))?;
        }
        say(planned, "end")?;
        if thread == 0 && write % WRITES_PER_FLUSH == WRITES_PER_FLUSH - 1 {
            db.flush()?;
        }
    }
    Ok(())
}

fn key(item: u64) -> Vec<u8> {
    format!("item-{item:08}").into_bytes()
}

/// The version, followed by noise whose length and content are a function of item and version.
fn value(item: u64, version: u64) -> Vec<u8> {
    let mut random = Random::new(item, version);
    let mut value = version.to_le_bytes().to_vec();
    let mut noise = vec![0; random.below(300) as usize];
    random.fill(&mut noise);
    value.extend_from_slice(&noise);
    value
}

/// Prints a line with one system call, so that a kill can truncate only the last line.
fn say(write: Write, moment: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(write.line(moment).as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(item: u64, version: u64) -> Write {
        Write { item, version, is_removal: false }
    }

    #[test]
    fn lost_and_older_writes_are_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::open(directory.path()).unwrap();
        let keyspace = db.keyspace(KEYSPACE).unwrap();
        keyspace.insert(key(1), value(1, 10)).unwrap();
        drop(keyspace);
        db.close().unwrap();
        let after = |lines: &[String]| {
            let mut expectation = Expectation::default();
            lines.iter().for_each(|line| expectation.take(line.trim_end()));
            expectation.check(directory.path())
        };
        let (begin, end) = (put(1, 10).line("begin"), put(1, 10).line("end"));
        after(std::slice::from_ref(&begin)).unwrap();
        after(&[begin.clone(), end.clone()]).unwrap();
        after(&[begin.clone(), end.clone(), put(1, 11).line("begin"), "put 1 1".to_owned()]).unwrap();
        after(&[begin.clone(), end.clone(), put(1, 11).line("begin"), put(1, 11).line("end")]).unwrap_err();
        after(&[begin, end, put(2, 1).line("end")]).unwrap_err();
        after(&[]).unwrap();
    }
}
