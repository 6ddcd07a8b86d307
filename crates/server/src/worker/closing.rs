//! Closing connections.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Worker;

impl Worker {
    pub(super) fn close_idle(&mut self, now: Instant, timeout: Duration) {
        let idle: Vec<usize> = self
            .connections
            .numbers()
            .filter(|number| {
                let connection = &self.connections[*number];
                !connection.awaits_answer
                    && !connection.session.takes_messages()
                    && now.duration_since(connection.active) >= timeout
            })
            .collect();
        for number in idle {
            self.close(number);
        }
    }

    /// Takes no more requests; connections close once their replies are sent.
    pub(super) fn stop_reading(&mut self) {
        let numbers: Vec<usize> = self.connections.numbers().collect();
        for number in numbers {
            self.connections[number].session.closing = true;
            self.touch(number);
        }
        self.finish_round();
    }

    pub(super) fn close(&mut self, number: usize) {
        // Closing the socket would end the watch as well, but not on every system.
        let _ = self.poller.remove(&self.connections[number].stream, number as u64);
        self.forget(number);
    }

    pub(super) fn forget(&mut self, number: usize) {
        if self.connections.contains(number) {
            self.let_go(number);
        }
        if let Some(connection) = self.connections.remove(number) {
            let session = &connection.session;
            self.shared.leave(session);
            tracing::debug!(id = session.id, client = session.client.peer(), "a connection ends");
            self.shared.connected.remove(session.id);
            self.inbox.load.fetch_sub(1, Ordering::Relaxed);
            self.shared.clients.fetch_sub(1, Ordering::Release);
            // Only now: a client that sees the connection end may open another in its place.
            drop(connection);
        }
    }
}
