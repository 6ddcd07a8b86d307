//! The thread that flushes, compacts, takes snapshots, checkpoints and backups, and changes plans and limits.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alluvium::{Db, KeyspaceSnapshot, Snapshot};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::board::ClosedWindow;
use super::clock::SKEW_MS_MAX;
use super::context::{Context, Stop};
use super::journal::{Journal, Record};
use super::key::{BESIDE, Catalog, Key, SHARED, all_keys, is_semi_sorted, space_name, spaces};
use super::phase;
use super::reader::check_items;
use super::setting::{PLANS, plan, random_plan};
use super::shared_writes::{ACCOUNTS, account_key, balance};

/// Maximum number of snapshots that are held at a time.
const SNAPSHOTS_MAX: usize = 3;
/// Number of backups that are kept.
const BACKUPS_KEPT: usize = 2;

/// See the module.
#[derive(Debug)]
pub struct Upkeep {
    context: Arc<Context>,
    catalogs: Arc<Vec<Catalog>>,
    journal: Journal,
    rng: StdRng,
    held: Vec<(Snapshot, Vec<ClosedWindow>)>,
}

impl Upkeep {
    pub fn new(context: Arc<Context>, catalogs: Arc<Vec<Catalog>>, journal: Journal, seed: u64) -> Self {
        Self { context, catalogs, journal, rng: StdRng::seed_from_u64(seed), held: Vec::new() }
    }

    pub fn run(mut self) {
        while !self.context.board.is_over() {
            std::thread::sleep(Duration::from_millis(self.rng.random_range(0..50)));
            if self.step().is_err() {
                return;
            }
        }
    }

    fn step(&mut self) -> Result<(), Stop> {
        let context = self.context.clone();
        let db = &context.db;
        let (what, outcome) = match self.rng.random_range(0..100) {
            0..10 if context.has("flush") => ("flush", self.durably("flush", Db::flush)),
            10..17 if context.has("compact") => ("compact", self.durably("compact", Db::compact)),
            17..27 if context.has("persist") => ("persist", self.durably("persist", Db::persist)),
            27..42 if context.has("snapshot") => ("snapshot", self.take_snapshot()),
            42..60 => ("reading a snapshot", self.read_snapshot()),
            60..65 if context.has("checkpoint") => ("checkpoint", self.make_checkpoint()),
            65..69 if context.has("backup") => ("backup", self.make_backup()),
            69..72 if context.has("verify") => ("verify", self.verify()),
            72..80 if context.has("memory") => {
                let bytes = [None, Some(4), Some(6), Some(16), Some(64)][self.rng.random_range(0..5)];
                let limited = db.set_memory_bytes_max(bytes.map(|mebibytes: u64| mebibytes << 20));
                ("changing the memory limit", limited)
            }
            80..86 if context.has("plan") => ("changing a plan", self.change_plan()),
            86..89 => {
                let bytes = [None, Some(1 << 20), Some(20 << 20)][self.rng.random_range(0..3)];
                db.set_background_bytes_per_s_max(bytes);
                return Ok(());
            }
            89..94 => {
                context.board.watch.set_skew_ms(self.rng.random_range(-SKEW_MS_MAX..=SKEW_MS_MAX));
                return Ok(());
            }
            94.. => {
                let stats = db.stats();
                if stats.keyspaces > usize::from(spaces(context.board.writers)) {
                    context.fail(&format!("{} keyspaces", stats.keyspaces));
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        match outcome {
            // Under a memory limit that was just lowered, iterators wait for each other.
            Ok(()) | Err(alluvium::Error::MemoryBusy { .. }) => Ok(()),
            Err(error) => Err(context.excuse(what, &error)),
        }
    }

    /// Performs an action that makes everything durable that was acknowledged before, and records that.
    fn durably(
        &mut self,
        what: &str,
        action: impl FnOnce(&Db) -> alluvium::Result<()>,
    ) -> alluvium::Result<()> {
        phase(what);
        let ops = self.context.board.all_ended();
        action(&self.context.db)?;
        let noted = self.journal.note(&Record::Durable { ops });
        noted.unwrap_or_else(|error| self.context.fail(&format!("writing a journal: {error}")));
        Ok(())
    }

    /// Opens windows over all keys, calls `action`, and closes them.
    fn at_a_moment<R>(
        &self,
        action: impl FnOnce() -> alluvium::Result<R>,
    ) -> alluvium::Result<(R, Vec<ClosedWindow>)> {
        let board = &self.context.board;
        let spaces = 0..spaces(board.writers);
        let windows: Vec<_> = spaces.map(|space| board.open(all_keys(space, board.writers))).collect();
        let result = action()?;
        Ok((result, windows.into_iter().map(|window| board.close(window)).collect()))
    }

    fn take_snapshot(&mut self) -> alluvium::Result<()> {
        let (snapshot, windows) = self.at_a_moment(|| self.context.db.snapshot())?;
        if self.held.len() >= SNAPSHOTS_MAX {
            self.held.remove(0);
        }
        self.held.push((snapshot, windows));
        Ok(())
    }

    /// Reads one of the held snapshots, and in half of the cases drops it.
    fn read_snapshot(&mut self) -> alluvium::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let number = self.rng.random_range(0..self.held.len());
        let (snapshot, windows) = self.held.swap_remove(number);
        self.check_snapshot("a snapshot", &snapshot, &windows)?;
        if self.rng.random() {
            self.held.push((snapshot, windows));
        }
        Ok(())
    }

    fn check_snapshot(
        &mut self,
        what: &str,
        snapshot: &Snapshot,
        windows: &[ClosedWindow],
    ) -> alluvium::Result<()> {
        let (context, writers) = (self.context.clone(), self.context.board.writers);
        for (space, window) in windows.iter().enumerate() {
            let Some(keyspace) = snapshot.keyspace(&space_name(space as u8)) else { continue };
            if self.rng.random() {
                let items = keyspace.iter().collect::<Result<Vec<_>, _>>()?;
                check_items(&context, &self.catalogs, space as u8, window, items, (what, true));
            } else {
                let keys: Vec<Vec<u8>> = context.board.keys(window).map(|key| key.bytes(writers)).collect();
                let mut values = Vec::with_capacity(keys.len());
                for keys in keys.chunks(32) {
                    values.extend(keyspace.multi_get(keys)?);
                }
                context.check_all(what, window, &values);
            }
        }
        if let (Some(shared), Some(beside)) =
            (snapshot.keyspace(&space_name(SHARED)), snapshot.keyspace(&space_name(BESIDE)))
        {
            self.check_invariants(what, &shared, &beside)?;
        }
        Ok(())
    }

    /// Checks that the accounts sum to zero and that twins are equal.
    fn check_invariants(
        &self,
        what: &str,
        shared: &KeyspaceSnapshot,
        beside: &KeyspaceSnapshot,
    ) -> alluvium::Result<()> {
        let mut sum = 0;
        for account in 0..ACCOUNTS {
            let value = shared.get(account_key(account))?;
            sum += balance(value.as_deref())
                .unwrap_or_else(|| self.context.fail(&format!("{what}: account {account}: {value:?}")));
        }
        if sum != 0 {
            self.context.fail(&format!("{what}: the accounts sum to {sum}"));
        }
        let writers = self.context.board.writers;
        for number in 0..u32::from(writers) {
            let bytes = Key { space: SHARED, number }.bytes(writers);
            let (one, other) = (shared.get(&bytes)?, beside.get(&bytes)?);
            if one != other {
                self.context.fail(&format!("{what}: the twins {number} are {one:?} and {other:?}"));
            }
        }
        Ok(())
    }

    fn make_checkpoint(&mut self) -> alluvium::Result<()> {
        let path = self.context.directory.join("checkpoint");
        let _ = std::fs::remove_dir_all(&path);
        phase("checkpoint");
        let ops = self.context.board.all_ended();
        let (_, windows) = self.at_a_moment(|| self.context.db.checkpoint(&path))?;
        self.note_durable(ops);
        self.check_copy("a checkpoint", &path, &windows)?;
        let _ = std::fs::remove_dir_all(&path);
        Ok(())
    }

    fn make_backup(&mut self) -> alluvium::Result<()> {
        let root = self.context.directory.join("backups");
        phase("backup");
        let ops = self.context.board.all_ended();
        let ((backup, _), windows) = self.at_a_moment(|| self.context.db.backup_into(&root))?;
        self.note_durable(ops);
        self.check_copy("a backup", &backup.path, &windows)?;
        alluvium::remove_old_backups(&root, BACKUPS_KEPT)?;
        Ok(())
    }

    fn note_durable(&mut self, ops: Vec<u64>) {
        let noted = self.journal.note(&Record::Durable { ops });
        noted.unwrap_or_else(|error| self.context.fail(&format!("writing a journal: {error}")));
    }

    /// Opens a copy and compares it with the content at the time when it was made.
    fn check_copy(&mut self, what: &str, path: &Path, windows: &[ClosedWindow]) -> alluvium::Result<()> {
        let environment = alluvium::Environment {
            clock: Arc::new(self.context.board.watch.clone()),
            ..alluvium::Environment::over(Arc::new(open_storage(path)?))
        };
        let copy = Db::builder(path).read_only(true).environment(environment).open()?;
        let report = copy.verify()?;
        if !report.problems.is_empty() {
            self.context.fail(&format!("{what}: {:?}", report.problems));
        }
        let snapshot = copy.snapshot()?;
        // Items may have expired since it was made.
        let latest = self.context.board.watch.latest();
        let windows: Vec<ClosedWindow> = windows.iter().map(|window| window.until(latest)).collect();
        self.check_snapshot(what, &snapshot, &windows)
    }

    fn verify(&self) -> alluvium::Result<()> {
        let report = self.context.db.verify()?;
        if !report.problems.is_empty() {
            self.context.fail(&format!("verify: {:?}", report.problems));
        }
        Ok(())
    }

    fn change_plan(&mut self) -> alluvium::Result<()> {
        phase("change-plan");
        let context = self.context.clone();
        if self.rng.random() {
            let name = PLANS[self.rng.random_range(0..PLANS.len())];
            return context.db.change_plan(plan(name).unwrap_or_else(|reason| context.fail(&reason)));
        }
        let space = self.rng.random_range(0..spaces(context.board.writers));
        match random_plan(is_semi_sorted(space), &mut self.rng) {
            Some(plan) => match context.space(space).change_plan(&plan) {
                Err(alluvium::Error::KeyspaceDropped { .. }) => Ok(()),
                outcome => outcome,
            },
            None => Ok(()),
        }
    }
}

fn open_storage(path: &Path) -> alluvium::Result<alluvium_io::FileStorage> {
    let storage = alluvium_io::FileStorage::open(path, alluvium_io::IoOptions::default());
    storage.map_err(|source| alluvium::Error::Io { context: format!("opening {}", path.display()), source })
}
