//! Counting the items of a large store for clients, beside the workers: it may read everything that is stored.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::inbox::Inbox;
use crate::shared::Shared;
use crate::store::DatabaseNumber;

/// A client that waits for a count.
pub(crate) struct Asker {
    pub(crate) inbox: Arc<Inbox>,
    /// Number of the connection at its worker, and of its session: by the time of the answer another connection may
    /// have the first.
    pub(crate) connection: usize,
    pub(crate) session: u64,
    /// What to count.
    pub(crate) database: DatabaseNumber,
}

/// A count for a client that asked.
pub(crate) struct Answer {
    pub(crate) connection: usize,
    pub(crate) session: u64,
    /// The count, or an error text with its code.
    pub(crate) outcome: Result<u64, String>,
}

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
    askers: Vec<Asker>,
    is_stopped: bool,
}

impl Counter {
    pub(crate) fn ask(&self, asker: Asker) {
        self.queue().askers.push(asker);
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
                Ok(Some(items)) => Ok(items),
                Ok(None) => Err("ERR the server is shutting down".to_owned()),
                Err(error) => Err(format!("ERR {error}")),
            };
            for Asker { inbox, connection, session, .. } in askers {
                inbox.answer(Answer { connection, session, outcome: outcome.clone() });
            }
        }
    }

    /// The clients that wait for a count of one database, once there are any; `None` if there will be no more.
    fn next_askers(&self) -> Option<(DatabaseNumber, Vec<Asker>)> {
        let mut queue = self.queue();
        while queue.askers.is_empty() && !queue.is_stopped {
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let database = queue.askers.first()?.database;
        let (askers, others) =
            std::mem::take(&mut queue.askers).into_iter().partition(|asker| asker.database == database);
        queue.askers = others;
        Some((database, askers))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
