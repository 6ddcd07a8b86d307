//! `cargo xtask torture`: real threads on real files, killed with SIGKILL at random moments, compared with an exact
//! model.
//!
//! The parent starts this program again as a child. The child opens a database, verifies it, and runs writers, readers
//! and upkeep on it until it is killed; the next child continues with the same database. Each writer owns keys. It
//! records what it is about to do, and what was acknowledged, in a file that survives the kill ([`journal`]), so each
//! child knows what must be present ([`verdict`]). Operations on whole keyspaces run beside the writers; [`whole`]
//! describes their results. Readers check each value against what its writer could have written by then ([`board`]).
//!
//! A seed determines what each thread does, but not how threads interleave: reproducing a failure may take many rounds.

mod board;
mod changer;
mod clock;
mod context;
mod journal;
mod key;
mod ledger;
mod observe;
mod reader;
mod round;
mod scarcity;
mod session;
mod setting;
mod shared_verdict;
mod shared_writes;
mod upkeep;
mod verdict;
mod whole;
mod writer;
mod writes;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

pub use session::{ChildOptions, run as run_child};

use round::{Round, Tally};
use scarcity::{Scarcity, SmallDisk};
use setting::{DURABILITIES, PLANS};

/// What to test and for how long.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Rounds: each starts a process on a database, and most of them kill it
    #[arg(long, default_value_t = 200)]
    pub rounds: u64,
    /// End after this time, even if rounds are left
    #[arg(long)]
    pub seconds: Option<u64>,
    /// Seed of everything except how threads interleave; random by default
    #[arg(long)]
    pub seed: Option<u64>,
    /// Only this plan: silt, silt-tiering, lsm-trie, lsm-trie-on-flash, slimdb, slimdb-tiering, leveled, skimpystash or
    /// auto
    #[arg(long)]
    pub plan: Option<String>,
    /// Only this durability: buffered, process, interval or sync
    #[arg(long)]
    pub durability: Option<String>,
    /// Writers of each database, besides two readers, a thread that changes whole keyspaces, and upkeep
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub threads: u8,
    /// Kinds of operation to leave out, to find out which ones a failure needs: clear, ingest, snapshot ...; `all`
    /// lists them
    #[arg(long, value_delimiter = ',')]
    pub without: Vec<String>,
    /// What all databases run out of: disk, descriptors or nothing; by default, one in five runs out of disk and one in
    /// five of descriptors
    #[arg(long)]
    pub scarcity: Option<String>,
    /// Directory for the databases; by default in the directory for temporary files
    #[arg(long)]
    pub directory: Option<PathBuf>,
    /// Keep the databases; those of a failure are always kept
    #[arg(long)]
    pub keep: bool,
}

/// Time between lines of progress.
const PROGRESS: Duration = Duration::from_secs(5);
/// The clock of one in this many databases deviates.
const CLOCKS: usize = 5;
/// One in this many databases has little disk, and another few descriptors.
const SCARCITIES: usize = 5;

/// Tells the parent, whose kill may wait for it, what the child is about to do.
fn phase(name: &str) {
    println!("phase {name}");
}

/// A database under test.
struct Victim {
    plan: &'static str,
    durability: &'static str,
    directory: PathBuf,
    clock_is_off: bool,
    scarcity: Option<Scarcity>,
    /// The file system that it fills, if any.
    disk: Option<SmallDisk>,
    rounds: u64,
}

impl Victim {
    /// Creates a directory for a new database.
    fn begin(&mut self) -> Result<(), String> {
        let made = std::fs::create_dir_all(&self.directory);
        made.map_err(|error| format!("creating {}: {error}", self.directory.display()))?;
        if self.scarcity == Some(Scarcity::Disk) {
            self.disk = SmallDisk::mount(&self.directory);
        }
        Ok(())
    }

    /// Removes the database.
    fn end(&mut self) -> Result<(), String> {
        self.disk = None;
        self.rounds = 0;
        let removed = std::fs::remove_dir_all(&self.directory);
        removed.map_err(|error| format!("removing {}: {error}", self.directory.display()))
    }
}

/// Runs the rounds, alternating over all plans and durabilities; on failure describes what was wrong in the first round
/// that failed.
pub fn run(options: &Options) -> Result<(), String> {
    if let Some(unknown) = options.without.iter().find(|kind| !session::KINDS.contains(&kind.as_str())) {
        return Err(format!(
            "no kind of operation is named {unknown:?}; known: {}",
            session::KINDS.join(", ")
        ));
    }
    let seed = options.seed.unwrap_or_else(rand::random);
    let root = match &options.directory {
        Some(directory) => directory.clone(),
        None => std::env::temp_dir().join(format!("alluvium-torture-{}", std::process::id())),
    };
    std::fs::create_dir_all(&root).map_err(|error| format!("creating {}: {error}", root.display()))?;
    let mut victims = victims(options, &root)?;
    // The program may be rebuilt meanwhile.
    let program = root.join("torture");
    let itself = std::env::current_exe().and_then(|itself| std::fs::copy(itself, &program));
    itself.map_err(|error| format!("copying this program to {}: {error}", program.display()))?;
    let start = Instant::now();
    let mut told = start;
    let mut rng = StdRng::seed_from_u64(seed);
    let mut tally = Tally::default();
    println!("torture: seed {seed}, {} databases in {}", victims.len(), root.display());
    for number in 0..options.rounds {
        if options.seconds.is_some_and(|seconds| start.elapsed() >= Duration::from_secs(seconds)) {
            break;
        }
        let count = victims.len() as u64;
        let victim = &mut victims[(number % count) as usize];
        if victim.rounds == 0 {
            victim.begin()?;
        }
        victim.rounds += 1;
        let is_last = number + count >= options.rounds || rng.random_range(0..24) == 0;
        let round = Round {
            program: &program,
            plan: victim.plan,
            durability: victim.durability,
            directory: &victim.directory,
            writers: options.threads,
            clock_is_off: victim.clock_is_off,
            scarcity: victim.scarcity.filter(|scarcity| *scarcity != Scarcity::Disk || victim.disk.is_some()),
            without: &options.without,
            seed: rng.random(),
            is_last,
        };
        if let Err(reason) = round.run(&mut rng, &mut tally) {
            victim.disk.take().into_iter().for_each(SmallDisk::keep);
            return Err(explain(options, seed, number, victim, &reason));
        }
        if is_last && !options.keep {
            // The next round starts a new database.
            victim.end()?;
        }
        if told.elapsed() >= PROGRESS {
            told = Instant::now();
            println!("torture: {}", tally.line(start.elapsed()));
        }
    }
    if options.keep {
        victims.into_iter().filter_map(|victim| victim.disk).for_each(SmallDisk::keep);
    } else {
        drop(victims);
        let removed = std::fs::remove_dir_all(&root);
        removed.map_err(|error| format!("removing {}: {error}", root.display()))?;
    }
    println!("torture: passed: {}", tally.line(start.elapsed()));
    Ok(())
}

fn victims(options: &Options, root: &Path) -> Result<Vec<Victim>, String> {
    let chosen = |names: &[&'static str], wanted: &Option<String>| match wanted {
        None => Ok(names.to_vec()),
        Some(wanted) => match names.iter().find(|name| *name == wanted) {
            Some(name) => Ok(vec![*name]),
            None => Err(format!("{wanted:?} is not one of {}", names.join(", "))),
        },
    };
    let mut victims = Vec::new();
    for plan in chosen(&PLANS, &options.plan)? {
        for durability in chosen(&DURABILITIES, &options.durability)? {
            let directory = root.join(format!("{plan}-{durability}"));
            if directory.exists() {
                return Err(format!("{} exists; give another directory", directory.display()));
            }
            let clock_is_off = victims.len() % CLOCKS == CLOCKS - 1;
            let scarcity = match (options.scarcity.as_deref(), victims.len() % SCARCITIES) {
                (Some("disk"), _) | (None, 1) => Some(Scarcity::Disk),
                (Some("descriptors"), _) | (None, 2) => Some(Scarcity::Descriptors),
                (Some("nothing") | None, _) => None,
                (Some(unknown), _) => {
                    return Err(format!("{unknown:?} is not one of disk, descriptors, nothing"));
                }
            };
            let (disk, rounds) = (None, 0);
            victims.push(Victim { plan, durability, directory, clock_is_off, scarcity, disk, rounds });
        }
    }
    Ok(victims)
}

fn explain(options: &Options, seed: u64, number: u64, victim: &Victim, reason: &str) -> String {
    let Victim { plan, durability, directory, rounds, .. } = victim;
    format!(
        "round {number}, the database's {rounds}., plan {plan}, durability {durability}: {reason}\nkept: {}\n\
         replay, as far as threads replay: cargo xtask torture --seed {seed} --rounds {} --threads {}",
        directory.display(),
        options.rounds,
        options.threads
    )
}
