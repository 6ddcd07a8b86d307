//! [`Running`]: the scripts and functions that are being executed.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::program::Program;

/// A script or a function: each has a command of its own that ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Script,
    Function,
}

/// The scripts and functions of all workers that are being executed.
#[derive(Default)]
pub(crate) struct Running {
    /// By their kinds.
    counts: [AtomicUsize; 2],
    /// Those of a kind that began before this many of its kills end.
    kills: [Arc<AtomicU64>; 2],
    functions: Mutex<Vec<Arc<RunningFunction>>>,
}

/// A function that is being executed.
pub(crate) struct RunningFunction {
    pub(crate) name: Box<str>,
    /// The first arguments of the request, cut as in the slow log.
    pub(crate) command: Vec<Box<[u8]>>,
    pub(crate) begun: Instant,
}

impl Running {
    /// Notes what is executed until the result is dropped.
    pub(super) fn begin(
        &self,
        program: &Program<'_>,
        command: impl FnOnce() -> Vec<Box<[u8]>>,
    ) -> Execution<'_> {
        let kind = program.kind();
        self.counts[kind as usize].fetch_add(1, Ordering::AcqRel);
        let function = match program {
            Program::Script { .. } => None,
            Program::Function(function) => {
                let name = function.name.clone();
                let function = Arc::new(RunningFunction { name, command: command(), begun: Instant::now() });
                self.functions().push(Arc::clone(&function));
                Some(function)
            }
        };
        Execution { running: self, kind, function }
    }

    /// Tells whether those of a kind that begin now are killed.
    pub(super) fn kill_watch(&self, kind: Kind) -> KillWatch {
        let kills = Arc::clone(&self.kills[kind as usize]);
        let before = kills.load(Ordering::Acquire);
        KillWatch { kills, before }
    }

    /// Ends those of a kind that are being executed.
    ///
    /// # Errors
    /// The text of the error reply, with its code, when nothing of this kind is being executed.
    pub(crate) fn kill(&self, kind: Kind) -> Result<(), &'static str> {
        self.kills[kind as usize].fetch_add(1, Ordering::AcqRel);
        let is_any = |kind: Kind| self.counts[kind as usize].load(Ordering::Acquire) > 0;
        match kind {
            _ if is_any(kind) => Ok(()),
            Kind::Script if is_any(Kind::Function) => Err(
                "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.",
            ),
            Kind::Function if is_any(Kind::Script) => {
                Err("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")
            }
            _ => Err("NOTBUSY No scripts in execution right now."),
        }
    }

    /// The function that is being executed for the longest time.
    pub(crate) fn oldest_function(&self) -> Option<Arc<RunningFunction>> {
        self.functions().first().cloned()
    }

    fn functions(&self) -> MutexGuard<'_, Vec<Arc<RunningFunction>>> {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A script or a function that is being executed.
pub(super) struct Execution<'a> {
    running: &'a Running,
    kind: Kind,
    function: Option<Arc<RunningFunction>>,
}

impl Drop for Execution<'_> {
    fn drop(&mut self) {
        if let Some(function) = &self.function {
            self.running.functions().retain(|other| !Arc::ptr_eq(other, function));
        }
        self.running.counts[self.kind as usize].fetch_sub(1, Ordering::AcqRel);
    }
}

/// Tells whether a script or a function was killed.
pub(super) struct KillWatch {
    kills: Arc<AtomicU64>,
    before: u64,
}

impl KillWatch {
    pub(super) fn is_killed(&self) -> bool {
        self.kills.load(Ordering::Acquire) != self.before
    }
}
