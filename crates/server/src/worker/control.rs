//! What ends a worker's connections, or lets them wait: other clients, and time.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::datagrams::WorkerDatagrams;
use super::{IDLE_SWEEP, Worker, memory};

impl Worker {
    /// How long the worker may wait for its sockets.
    pub(super) fn timeout(&self, deadline: Option<Instant>) -> Option<Duration> {
        let has_datagrams = self.datagrams.as_ref().is_some_and(WorkerDatagrams::is_due);
        if !self.resumable.is_empty() || has_datagrams {
            return Some(Duration::ZERO);
        }
        let pause = if self.held > 0 { self.shared.pause.remaining().or(Some(Duration::ZERO)) } else { None };
        let other = match deadline {
            Some(deadline) => Some(deadline.saturating_duration_since(Instant::now())),
            None => (self.shared.idle_timeout().is_some() || self.has_streams).then_some(IDLE_SWEEP),
        };
        let retry = (!self.waiting.is_empty()).then_some(memory::RETRY);
        // Rounded up, so that the pause has ended.
        let pause = pause.map(|pause| pause + Duration::from_millis(1));
        pause.into_iter().chain(other).chain(retry).min()
    }

    /// Lets the next request of a connection wait for the end of a pause.
    pub(super) fn hold(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        connection.unprocessed = true;
        connection.is_held = true;
        self.held += 1;
        self.shared.held_clients.fetch_add(1, Ordering::Relaxed);
    }

    /// Continues with the requests that waited, if the pause has ended.
    pub(super) fn release_held(&mut self) {
        if self.held == 0 || self.shared.pause.paused().is_some() {
            return;
        }
        let numbers: Vec<usize> = self.connections.numbers().collect();
        for number in numbers {
            if self.let_go(number) {
                self.resumable.push(number);
            }
        }
    }

    /// Whether the connection waited for the end of a pause, as it does not any more.
    pub(super) fn let_go(&mut self, number: usize) -> bool {
        let was_held = std::mem::take(&mut self.connections[number].is_held);
        if was_held {
            self.held -= 1;
            self.shared.held_clients.fetch_sub(1, Ordering::Relaxed);
        }
        was_held
    }

    /// Closes the connections that other clients want to be closed.
    pub(super) fn take_kills(&mut self) {
        let kills = self.inbox.take_kills();
        if kills.is_empty() {
            return;
        }
        let killed: HashSet<u64> = kills.into_iter().collect();
        let numbers: Vec<usize> = self.connections.numbers().collect();
        for number in numbers {
            if killed.contains(&self.connections[number].session.id) {
                self.close(number);
            }
        }
    }
}
