//! The child process: opens the database, verifies it, and tortures it until it is killed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::board::Board;
use super::changer::Changer;
use super::clock::Watch;
use super::context::{Context, fail};
use super::journal::{self, Journal, Record};
use super::ledger::{Base, JOURNALS_BESIDE, Notes};
use super::observe::{check_directory, check_iterations, observe};
use super::phase;
use super::reader::{Reader, catalogs};
use super::scarcity::{database_path, drop_ballast, fill};
use super::setting::Setting;
use super::upkeep::Upkeep;
use super::verdict::judge;
use super::writer::Writer;

/// Options of one child process; the parent passes these.
#[derive(Clone, Debug, clap::Args)]
pub struct ChildOptions {
    /// Directory of the database, its journals and copies
    #[arg(long)]
    pub directory: PathBuf,
    #[arg(long)]
    pub plan: String,
    #[arg(long)]
    pub durability: String,
    #[arg(long)]
    pub writers: u8,
    #[arg(long)]
    pub seed: u64,
    /// Number of openings before it ends by itself
    #[arg(long)]
    pub sessions: Option<u32>,
    /// Whether the clock is set forward and back
    #[arg(long)]
    pub clock_is_off: bool,
    /// Whether operations may fail because a resource runs out
    #[arg(long)]
    pub is_scarce: bool,
    /// Kinds of operation to leave out
    #[arg(long, value_delimiter = ',')]
    pub without: Vec<String>,
    /// Only verify
    #[arg(long)]
    pub quiet: bool,
}

/// The kinds of operation that a session may leave out.
pub const KINDS: [&str; 26] = [
    "scan",
    "iterate",
    "snapshot",
    "checkpoint",
    "backup",
    "compact",
    "flush",
    "persist",
    "plan",
    "memory",
    "verify",
    "clear",
    "drop",
    "delete-prefix",
    "ingest",
    "own-clear",
    "own-delete-prefix",
    "own-ingest",
    "batch",
    "condition",
    "update",
    "transaction",
    "increment",
    "append",
    "swap",
    "expiry",
];

/// A child that is not killed ends by itself after this time.
const LIFE_MAX: Duration = Duration::from_secs(120);
/// Maximum files and bytes of a database of this test when nothing is in progress.
const FILES_MAX: usize = 400;
const BYTES_MAX: u64 = 256 << 20;
/// The same for a compacted database.
const COMPACT_FILES_MAX: usize = 200;
const COMPACT_BYTES_MAX: u64 = 64 << 20;

/// Runs sessions until it is killed, or as many as requested.
pub fn run(options: &ChildOptions) -> Result<(), String> {
    let hook = std::panic::take_hook();
    let directory = options.directory.clone();
    std::panic::set_hook(Box::new(move |info| {
        hook(info);
        fail(&directory, &format!("a panic: {info}"));
    }));
    let setting = Setting {
        plan: options.plan.clone(),
        durability: options.durability.clone(),
        writers: options.writers,
        clock_is_off: options.clock_is_off,
    };
    let mut rng = StdRng::seed_from_u64(options.seed);
    let start = Instant::now();
    let mut session = 0;
    while options.sessions.is_none_or(|sessions| session < sessions) && start.elapsed() < LIFE_MAX {
        session += 1;
        let is_last = options.sessions == Some(session);
        let outcome = Session { options, setting: &setting, rng: &mut rng, is_last }.run();
        outcome.unwrap_or_else(|reason| fail(&options.directory, &reason));
    }
    Ok(())
}

struct Session<'a> {
    options: &'a ChildOptions,
    setting: &'a Setting,
    rng: &'a mut StdRng,
    is_last: bool,
}

impl Session<'_> {
    fn run(self) -> Result<(), String> {
        let Self { options, setting, rng, is_last } = self;
        drop_ballast(&options.directory);
        let (database, notes_at) = (database_path(&options.directory), options.directory.join("notes"));
        for path in [&database, &notes_at] {
            std::fs::create_dir_all(path).map_err(|error| format!("creating a directory: {error}"))?;
        }
        let base = Base::load(&notes_at)?.unwrap_or_else(|| Base::new(setting.writers));
        let notes = Notes::load(&notes_at, &base, setting.is_kept())?;
        let watch = Watch::new(setting.clock_is_off);
        phase("opening");
        let opened = setting.builder(&database, &watch, rng)?.open();
        let db = opened.map_err(|error| format!("opening: {error}"))?;
        phase("opened");
        let catalogs = catalogs(setting.writers);
        let observation = observe(&db, &base, &notes, &watch, rng)?;
        let (next, lost) = judge(&base, &notes, &observation)?;
        check_iterations(&db, &next, &catalogs, &watch)?;
        check_directory(&database, FILES_MAX, BYTES_MAX)?;
        let next = keep_last_list(next);
        let journal = |writer| Journal::create(&notes_at, next.session, writer);
        let journals = (0..=setting.writers).map(journal).collect::<Result<Vec<_>, _>>();
        let mut journals = journals.map_err(|error| format!("creating journals: {error}"))?;
        next.save(&notes_at).map_err(|error| format!("saving the base: {error}"))?;
        for writer in 0..setting.writers + JOURNALS_BESIDE as u8 {
            let _ = std::fs::remove_file(journal::path(&notes_at, base.session, writer));
        }
        println!("verified {} {lost}", next.outcomes.len());
        let upkeep_journal = Journal::create(&notes_at, next.session, setting.writers + 1);
        let upkeep_journal = upkeep_journal.map_err(|error| format!("creating journals: {error}"))?;
        let board = Board::new(&next, watch.clone());
        let context = Context::new(db, board, options, without(options, rng));
        let context = Arc::new(context.map_err(|error| format!("opening keyspaces: {error}"))?);
        if !options.quiet {
            let mut threads = Vec::new();
            let mut spawn = |body: Box<dyn FnOnce() + Send>| threads.push(std::thread::spawn(body));
            let changer_journal = journals.pop().ok_or("there is a journal for each")?;
            for (writer, journal) in journals.drain(..).enumerate() {
                let (op, seed) = (next.next_op[writer], rng.random());
                let writer = Writer::new(writer as u8, context.clone(), journal, op, seed);
                spawn(Box::new(|| writer.run()));
            }
            let op = next.next_op[usize::from(setting.writers)];
            let changer = Changer::new(context.clone(), changer_journal, op, rng.random());
            spawn(Box::new(|| changer.run()));
            for _ in 0..2 {
                let reader = Reader::new(context.clone(), catalogs.clone(), rng.random());
                spawn(Box::new(|| reader.run()));
            }
            let upkeep = Upkeep::new(context.clone(), catalogs.clone(), upkeep_journal, rng.random());
            spawn(Box::new(|| upkeep.run()));
            if options.is_scarce {
                let (context, rng) = (context.clone(), StdRng::seed_from_u64(rng.random()));
                spawn(Box::new(move || fill(&context, rng)));
            }
            wait(&context, Duration::from_millis(rng.random_range(50..1200)));
            context.board.is_over.store(true, Ordering::Relaxed);
            for thread in threads {
                thread.join().map_err(|_| "a thread panicked".to_owned())?;
            }
        }
        drop_ballast(&options.directory);
        close(context, &notes_at, &next, is_last)
    }
}

/// The kinds of operation that a session leaves out: the requested ones, and some at random, so that sessions differ in
/// kind (swarm testing, Groce et al., ISSTA 2012).
fn without(options: &ChildOptions, rng: &mut StdRng) -> Vec<String> {
    let mut without = options.without.clone();
    if rng.random_range(0..3) > 0 {
        without.extend(KINDS.iter().filter(|_| rng.random_range(0..4) == 0).map(|kind| (*kind).to_owned()));
    }
    without
}

/// Reports progress to the parent from time to time.
fn wait(context: &Context, life: Duration) {
    let start = Instant::now();
    while start.elapsed() < life && !context.board.is_over() {
        std::thread::sleep(Duration::from_millis(20));
        println!("operations {}", context.board.operations.load(Ordering::Relaxed));
    }
}

/// Closes the database, and records that everything is durable. The last session leaves it compacted.
fn close(context: Arc<Context>, notes_at: &Path, base: &Base, is_last: bool) -> Result<(), String> {
    let Context { db, board, is_scarce, directory, .. } =
        Arc::into_inner(context).ok_or("a thread still has the database")?;
    println!("operations {}", board.operations.load(Ordering::Relaxed));
    let words = |what: &str, error: alluvium::Error| format!("{what}: {error}");
    if is_last && !is_scarce {
        phase("settling");
        db.set_background_bytes_per_s_max(None);
        db.compact().map_err(|error| words("compacting", error))?;
        db.wait_idle().map_err(|error| words("waiting", error))?;
        let report = db.verify().map_err(|error| words("verifying", error))?;
        if !report.problems.is_empty() {
            return Err(format!("verify: {:?}", report.problems));
        }
    }
    phase("closing");
    let ops = board.all_ended();
    match db.close() {
        Ok(()) => {
            let mut journal = Journal::create(notes_at, base.session, base.next_op.len() as u8 + 1)
                .map_err(|error| error.to_string())?;
            journal.note(&Record::Durable { ops }).map_err(|error| error.to_string())?;
        }
        Err(_) if is_scarce => {}
        Err(error) => return Err(words("closing", error)),
    }
    phase("closed");
    if is_last && !is_scarce {
        let found = check_directory(&database_path(&directory), COMPACT_FILES_MAX, COMPACT_BYTES_MAX)?;
        println!("directory {} {}", found.0, found.1);
    }
    Ok(())
}

/// Leaves out finished lists, to which nothing is appended any more.
fn keep_last_list(mut base: Base) -> Base {
    if let Some(&last) = base.shared.lists.keys().next_back() {
        base.shared.lists.retain(|list, _| *list == last);
    }
    base
}
