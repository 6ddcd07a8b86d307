//! [`Clients`]: all connections, for those that ask about others.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::client::Client;
use crate::client_memory::{Relief, SMALL_BYTES};
use crate::inbox::Inbox;
use crate::mail::Address;

/// The connections of all workers, by their numbers.
#[derive(Default)]
pub(crate) struct Clients {
    entries: Mutex<BTreeMap<u64, Entry>>,
}

struct Entry {
    client: Arc<Client>,
    /// Of its worker.
    inbox: Arc<Inbox>,
}

impl Clients {
    pub(crate) fn add(&self, client: Arc<Client>, inbox: Arc<Inbox>) {
        self.entries().insert(client.id, Entry { client, inbox });
    }

    pub(crate) fn remove(&self, id: u64) {
        self.entries().remove(&id);
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<Client>> {
        self.entries().get(&id).map(|entry| Arc::clone(&entry.client))
    }

    /// How to reach a connection.
    pub(crate) fn address(&self, id: u64) -> Option<Address> {
        let entries = self.entries();
        let Entry { client, inbox } = entries.get(&id)?;
        Some(Address { inbox: Arc::clone(inbox), connection: client.connection()?, session: id })
    }

    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        self.entries().values().map(|entry| Arc::clone(&entry.client)).collect()
    }

    /// Lets the workers close connections, which are not listed any more from now on.
    pub(crate) fn kill(&self, ids: impl Iterator<Item = u64>) {
        let mut entries = self.entries();
        for entry in ids.filter_map(|id| entries.remove(&id)) {
            entry.inbox.kill(entry.client.id);
        }
    }

    /// Closes the clients that hold the most bytes. The favoured client stays if it was active within `patience`, and
    /// so does one with `CLIENT NO-EVICT` while there are others. Returns their number and bytes.
    pub(crate) fn close_largest(&self, relief: Relief, patience: Duration) -> (u64, usize) {
        let mut entries = self.entries();
        let favoured = entries.get(&relief.favoured).filter(|entry| entry.client.idle() < patience);
        let favoured = favoured.map(|entry| entry.client.id);
        if relief.yields && favoured.is_some() {
            return (0, 0);
        }
        let mut holders: Vec<(bool, usize, u64)> = entries
            .values()
            .map(|Entry { client, .. }| (client, client.charged_bytes()))
            .filter(|(client, held)| *held > SMALL_BYTES && Some(client.id) != favoured)
            .map(|(client, held)| (client.stays.load(Ordering::Relaxed), held, client.id))
            .collect();
        holders.sort_unstable_by_key(|&(stays, held, id)| (stays, Reverse(held), id));
        let (mut closed, mut freed) = (0, 0);
        for (_, _, id) in holders {
            if freed >= relief.bytes {
                break;
            }
            if let Some(Entry { client, inbox }) = entries.remove(&id) {
                freed += client.leave();
                closed += 1;
                inbox.kill(id);
            }
        }
        (closed, freed)
    }

    /// Wakes all workers that have connections.
    pub(crate) fn wake(&self) {
        let mut woken: Vec<Arc<Inbox>> = Vec::new();
        for entry in self.entries().values() {
            if !woken.iter().any(|inbox| Arc::ptr_eq(inbox, &entry.inbox)) {
                entry.inbox.wake();
                woken.push(Arc::clone(&entry.inbox));
            }
        }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<u64, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
