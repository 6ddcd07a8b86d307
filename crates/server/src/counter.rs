//! Counting the items of a large store for clients, beside the workers: it may read everything that is stored.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::answer::{Asker, Finding};
use crate::shared::Shared;
use crate::store::DatabaseNumber;

/// One count at a time. A client that asks while a count is in progress waits for the next one, which begins after it
/// asked; all clients that wait for the same database then share it. A connection waits for at most one count, so the
/// list is no longer than that of connections.
#[derive(Default)]
pub(crate) struct Counter {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// With what they want to be counted.
    askers: Vec<(DatabaseNumber, Asker)>,
    is_stopped: bool,
}

impl Counter {
    pub(crate) fn ask(&self, database: DatabaseNumber, asker: Asker) {
        self.queue().askers.push((database, asker));
        self.changed.notify_one();
    }

    /// Ends [`Counter::run`] once the server is asked to stop.
    pub(crate) fn stop(&self) {
        self.queue().is_stopped = true;
        self.changed.notify_all();
    }

    /// Counts for the clients that ask, until it is stopped. A count in progress ends when the server is asked to stop.
    pub(crate) fn run(&self, shared: &Shared) {
        while let Some((database, askers)) = self.next_askers() {
            let counted = shared.store.database(database).count(&mut || !shared.shutdown.is_asked());
            let outcome = match counted {
                Ok(Some(items)) => Ok(Finding::Count(items)),
                Ok(None) => Err("ERR the server is shutting down".to_owned()),
                Err(error) => Err(format!("ERR {error}")),
            };
            for asker in askers {
                asker.answer(outcome.clone());
            }
        }
    }

    /// The clients that wait for a count of one database, once there are any; `None` if there will be no more.
    fn next_askers(&self) -> Option<(DatabaseNumber, Vec<Asker>)> {
        let mut queue = self.queue();
        while queue.askers.is_empty() && !queue.is_stopped {
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let database = queue.askers.first()?.0;
        let (askers, others) =
            std::mem::take(&mut queue.askers).into_iter().partition(|(other, _)| *other == database);
        queue.askers = others;
        let askers: Vec<_> = askers;
        Some((database, askers.into_iter().map(|(_, asker)| asker).collect()))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
