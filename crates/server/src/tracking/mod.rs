//! Clients that keep what they read, and are told when it becomes invalid (`CLIENT TRACKING`).
//!
//! **The rule:** a read registers its keys before it reads, and a write looks the readers up after it has taken effect.
//! Then no invalidation is lost: a write that a read did not see comes after the read, so it finds the registration. A
//! write in between takes the registration away, although the read sees the new value: so what it sends must not reach
//! the client before the reply. It does not, because a worker takes its mail at the beginning of a round, and
//! registers, reads and replies in the same round. The client then drops a value that was right.

mod prefixes;
mod reading;
mod table;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::changes::{Change, Observers};
use crate::clients::Clients;
use crate::mail::{Address, Content, Letters};
use prefixes::Prefixes;
use table::Table;

pub(crate) use prefixes::overlap;
pub(crate) use reading::{Mode, Reading};

/// Maximum number of keys in the table unless `CONFIG SET tracking-table-max-keys` says otherwise, as in Redis.
const KEYS_MAX: usize = 1_000_000;

/// All clients that keep what they read.
pub(crate) struct Tracking {
    state: Mutex<State>,
    keys_max: AtomicUsize,
}

#[derive(Default)]
struct State {
    clients: HashMap<u64, Client>,
    /// Which clients have read which keys. Those that have left are still there until the keys change.
    table: Table,
    /// Clients that are told about all keys with a prefix, by the prefix.
    prefixes: Prefixes,
}

/// A client that keeps what it reads.
struct Client {
    address: Address,
    /// The client that is told instead.
    redirection: Option<u64>,
    /// Whether it is told about keys that it changes itself.
    hears_itself: bool,
    is_broadcast: bool,
    /// The client that was to be told is gone.
    has_lost_redirection: bool,
}

/// Figures for `INFO`.
pub(crate) struct TrackingCounts {
    pub(crate) clients: usize,
    pub(crate) keys: usize,
    /// Of a key and a client each.
    pub(crate) items: usize,
    pub(crate) prefixes: usize,
}

impl Default for Tracking {
    fn default() -> Self {
        Self { state: Mutex::default(), keys_max: AtomicUsize::new(KEYS_MAX) }
    }
}

impl Tracking {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to tell a client, or changes how.
    pub(crate) fn enable(&self, address: Address, reading: &Reading, observers: &Observers) {
        let mut state = self.state();
        let id = address.session;
        reading.prefixes.iter().for_each(|prefix| state.prefixes.insert(prefix, id));
        let client = Client {
            address,
            redirection: reading.redirection,
            hears_itself: !reading.is_no_loop,
            is_broadcast: reading.mode == Mode::Broadcast,
            has_lost_redirection: false,
        };
        state.clients.insert(id, client);
        // Under the lock, like the other one.
        observers.set_tracking(true);
    }

    /// Tells a client no more.
    pub(crate) fn disable(&self, id: u64, reading: &Reading, observers: &Observers) {
        let mut state = self.state();
        reading.prefixes.iter().for_each(|prefix| state.prefixes.remove(prefix, id));
        state.clients.remove(&id);
        if state.clients.is_empty() {
            observers.set_tracking(false);
            state.table.clear();
        }
    }

    /// Registers keys that a client is about to read. Returns those that it was not registered for.
    pub(crate) fn remember<'a>(
        &self,
        reader: u64,
        keys: impl Iterator<Item = &'a [u8]>,
        connected: &Clients,
    ) -> Vec<&'a [u8]> {
        let mut state = self.state();
        let new: Vec<&[u8]> = keys.filter(|key| state.table.insert(key, reader)).collect();
        self.bound(&mut state, connected);
        new
    }

    pub(crate) fn keys_max(&self) -> usize {
        self.keys_max.load(Ordering::Relaxed)
    }

    /// Sets how many keys the table may have; 0 for no limit.
    pub(crate) fn set_keys_max(&self, keys_max: usize, connected: &Clients) {
        self.keys_max.store(keys_max, Ordering::Relaxed);
        self.bound(&mut self.state(), connected);
    }

    /// Takes keys out of a table that is too large. Its readers are told, as if the keys had changed.
    fn bound(&self, state: &mut State, connected: &Clients) {
        let keys_max = match self.keys_max() {
            0 => usize::MAX,
            keys_max => keys_max,
        };
        let mut letters = Letters::default();
        while let Some((key, readers)) = state.table.remove_if_beyond(keys_max) {
            state.tell(&key, &readers, None, connected, &mut letters);
        }
        letters.send();
    }

    /// Tells the readers of keys that these were changed. The changes have taken effect.
    pub(crate) fn invalidate(&self, changes: &[Change], connected: &Clients) {
        let mut state = self.state();
        let mut letters = Letters::default();
        for change in changes {
            if let Some(readers) = state.table.remove(&change.key) {
                state.tell(&change.key, &readers, Some(change.writer), connected, &mut letters);
            }
        }
        for (id, keys) in state.prefixes.concerned(changes) {
            let Some(client) = state.clients.get(&id) else { continue };
            let heard = keys.into_iter().filter(|(_, writer)| client.hears_itself || *writer != id);
            let keys: Arc<[Arc<[u8]>]> = heard.map(|(key, _)| key).collect();
            if !keys.is_empty() {
                state.send(id, Some(keys), connected, &mut letters);
            }
        }
        letters.send();
    }

    /// Tells all clients that all keys may have changed.
    pub(crate) fn invalidate_all(&self, observers: &Observers, connected: &Clients) {
        if !observers.get().has_tracking() {
            return;
        }
        let mut state = self.state();
        state.table.clear();
        let ids: Vec<u64> = state.clients.keys().copied().collect();
        let mut letters = Letters::default();
        for id in ids {
            state.send(id, None, connected, &mut letters);
        }
        letters.send();
    }

    /// After writes that were not recorded because there was no client to tell. If there is one now, it may have read
    /// before the writes.
    pub(crate) fn forget_all_if_just_enabled(&self, observers: &Observers, connected: &Clients) {
        if observers.is_tracking_after_writes() {
            self.invalidate_all(observers, connected);
        }
    }

    /// Whether the client that was to be told instead of this one is gone.
    pub(crate) fn has_lost_redirection(&self, id: u64) -> bool {
        self.state().clients.get(&id).is_some_and(|client| client.has_lost_redirection)
    }

    pub(crate) fn counts(&self) -> TrackingCounts {
        let state = self.state();
        TrackingCounts {
            clients: state.clients.len(),
            keys: state.table.len(),
            items: state.table.items(),
            prefixes: state.prefixes.len(),
        }
    }
}

impl State {
    /// Tells clients that have read a key. One that is told by prefixes now has forgotten what it read before.
    fn tell(
        &mut self,
        key: &Arc<[u8]>,
        readers: &[u64],
        writer: Option<u64>,
        connected: &Clients,
        letters: &mut Letters,
    ) {
        for id in readers {
            let is_told = self.clients.get(id).is_some_and(|client| {
                !client.is_broadcast && (client.hears_itself || writer != Some(client.address.session))
            });
            if is_told {
                self.send(*id, Some([key.clone()].into()), connected, letters);
            }
        }
    }

    fn send(&mut self, id: u64, keys: Option<Arc<[Arc<[u8]>]>>, connected: &Clients, letters: &mut Letters) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        match client.redirection {
            None => {
                letters.add(&Content::Invalidation { keys, is_redirected: false }, [&client.address]);
            }
            Some(other) => match connected.address(other) {
                Some(address) => {
                    letters.add(&Content::Invalidation { keys, is_redirected: true }, [&address]);
                }
                None => {
                    client.has_lost_redirection = true;
                    letters.add(&Content::RedirectionLost(other), [&client.address]);
                }
            },
        }
    }
}
