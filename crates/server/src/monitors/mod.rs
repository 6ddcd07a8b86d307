//! Clients that are shown all commands (`MONITOR`).

mod trace;

use std::sync::{PoisonError, RwLock};

use crate::changes::Observers;
use crate::mail::{Address, Content, Outbox};

pub(crate) use trace::line;

/// The clients that are shown all commands.
#[derive(Default)]
pub(crate) struct Monitors(RwLock<Vec<Address>>);

impl Monitors {
    pub(crate) fn add(&self, address: Address, observers: &Observers) {
        let mut monitors = self.0.write().unwrap_or_else(PoisonError::into_inner);
        monitors.push(address);
        // Under the lock, like the other one.
        observers.set_monitors(true);
    }

    pub(crate) fn remove(&self, session: u64, observers: &Observers) {
        let mut monitors = self.0.write().unwrap_or_else(PoisonError::into_inner);
        monitors.retain(|address| address.session != session);
        if monitors.is_empty() {
            observers.set_monitors(false);
        }
    }

    /// Shows a command to all of them after the round's commit.
    pub(crate) fn show(&self, line: &str, outbox: &mut Outbox) {
        let monitors = self.0.read().unwrap_or_else(PoisonError::into_inner);
        outbox.tell(&Content::Trace(line.into()), &monitors);
    }
}
