//! What all threads of a session share: the open database, the board, and how to report failures.

use std::path::{Path, PathBuf};
use std::sync::RwLock;

use alluvium::{Db, Error, Keyspace};

use super::board::{Board, ClosedWindow};
use super::key::{Key, Seen, spaces};
use super::session::ChildOptions;
use super::setting::open_keyspace;

/// The exit code of a child that found something wrong.
pub const FAILED: i32 = 3;
/// The file that describes the failure.
pub const FAILURE: &str = "FAILURE";

/// An open database under torture.
#[derive(Debug)]
pub struct Context {
    pub db: Db,
    keyspaces: Vec<RwLock<Keyspace>>,
    pub board: Board,
    pub directory: PathBuf,
    /// Whether resources run out, so that operations may fail.
    pub is_scarce: bool,
    /// Kinds of operation that are left out.
    without: Vec<String>,
}

/// Why a thread ends early: a resource ran out.
#[derive(Debug)]
pub struct Stop;

impl Context {
    pub fn new(db: Db, board: Board, options: &ChildOptions, without: Vec<String>) -> Result<Self, Error> {
        let keyspaces = (0..spaces(board.writers)).map(|space| open_keyspace(&db, space).map(RwLock::new));
        let keyspaces = keyspaces.collect::<Result<_, _>>()?;
        let directory = options.directory.clone();
        Ok(Self { db, keyspaces, board, directory, is_scarce: options.is_scarce, without })
    }

    /// Whether operations of this kind are part of the torture.
    pub fn has(&self, kind: &str) -> bool {
        !self.without.iter().any(|without| without == kind)
    }

    /// The keyspace with this number.
    pub fn space(&self, space: u8) -> Keyspace {
        self.keyspaces[usize::from(space)].read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Creates a dropped keyspace again.
    pub fn reopen(&self, space: u8) -> Result<(), Error> {
        let keyspace = open_keyspace(&self.db, space)?;
        *self.keyspaces[usize::from(space)].write().unwrap_or_else(|poisoned| poisoned.into_inner()) =
            keyspace;
        Ok(())
    }

    /// Reports what is wrong and ends the process, so that the files stay as they are.
    pub fn fail(&self, reason: &str) -> ! {
        fail(&self.directory, reason)
    }

    /// Returns the reason to end the thread if a resource ran out, otherwise fails.
    pub fn excuse(&self, what: &str, error: &Error) -> Stop {
        let is_wrong = matches!(
            error,
            Error::Corruption(_)
                | Error::MissingFile { .. }
                | Error::NotADatabase { .. }
                | Error::NotANumber { .. }
        );
        if self.is_scarce && !is_wrong {
            self.board.is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            return Stop;
        }
        self.fail(&format!("{what}: {error}"))
    }

    /// Checks the values that were read for the keys of a window, in their order.
    pub fn check_all(&self, what: &str, window: &ClosedWindow, values: &[Option<Vec<u8>>]) {
        let keys: Vec<Key> = self.board.keys(window).collect();
        for (number, (key, value)) in keys.into_iter().zip(values).enumerate() {
            let seen = Seen::of(key, value.as_deref());
            let fits = seen.and_then(|seen| self.board.check(window, number, &seen));
            fits.unwrap_or_else(|reason| self.fail(&format!("{what}: {reason}")));
        }
    }
}

/// Reports what is wrong and ends the process.
pub fn fail(directory: &Path, reason: &str) -> ! {
    // If no descriptors are left, standard error is still open.
    eprintln!("{reason}");
    let _ = std::fs::write(directory.join(FAILURE), reason);
    std::process::exit(FAILED)
}
