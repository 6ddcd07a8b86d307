//! The end of a round: its commit, and sending its replies.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{WAKE_TOKEN, Worker};
use crate::client_memory::SMALL_BYTES;
use crate::commits::Joined;

impl Worker {
    /// Looks the batch up, and sends the replies of the round, after the commit that they wait for.
    pub(super) fn finish_round(&mut self) {
        self.look_up();
        self.batch.counts.move_to(&self.shared.memcached.counts);
        let commands = std::mem::take(&mut self.commands_in_round);
        self.shared.commands_processed.fetch_add(commands, Ordering::Relaxed);
        if self.touched.is_empty() {
            self.outbox.send(&self.shared);
            return;
        }
        if self.shared.store.commit_waits() {
            self.join_commit();
        } else {
            self.commit_at_once();
        }
        let mut touched = std::mem::take(&mut self.touched);
        for number in touched.drain(..) {
            self.settle(number);
        }
        self.touched = touched;
        if self.shared.memory.is_exceeded() {
            self.relieve(Duration::ZERO);
        }
    }

    fn commit_at_once(&mut self) {
        let begun = self.meter.begin();
        let has_begun = self.writes.take_begun();
        let writes = self.meter.end_round();
        if let Some(outcome) = self.shared.commits.commit_at_once(has_begun, &*self.shared.store) {
            self.writes.end(&mut self.connections, &outcome);
            self.meter.committed(begun, writes);
        }
        self.outbox.send(&self.shared);
    }

    /// Commits the round, or lets it wait for a commit of another thread.
    ///
    /// A worker commits itself, which saves two wake-ups, if its clients sent nothing during the last commit: then they
    /// all wait for this one.
    fn join_commit(&mut self) {
        let has_begun = self.writes.take_begun();
        let may_lead = !self.is_busy && !self.writes.are_held();
        let writes = self.meter.end_round();
        match self.shared.commits.join(has_begun, may_lead, &self.inbox) {
            Joined::Durable => self.outbox.send(&self.shared),
            Joined::Leads => {
                let begun = self.meter.begin();
                let outcome = self.shared.commits.lead(&*self.shared.store);
                self.writes.end(&mut self.connections, &outcome);
                self.meter.committed(begun, writes);
                self.outbox.send(&self.shared);
                // What is ready now is still ready when the next round begins.
                let peeked = self.poller.wait(&mut self.peeked, Some(Duration::ZERO));
                self.is_busy = peeked.is_ok() && self.peeked.iter().any(|event| event.token != WAKE_TOKEN);
            }
            Joined::Waits(ticket) => {
                if !self.writes.are_held() {
                    self.has_overlapped = false;
                }
                let connections = &mut self.connections;
                self.writes.hold(ticket, connections, &self.touched, &mut self.outbox, writes);
            }
        }
    }

    /// Sends the replies of the rounds whose commits have ended.
    pub(super) fn take_commits(&mut self) {
        if !self.writes.are_held() {
            return;
        }
        for (ticket, outcome) in self.inbox.take_commits() {
            while let Some((mut round, ends)) = self.writes.release(&mut self.connections, ticket, &outcome) {
                self.meter.committed(round.begun, round.metered);
                round.outbox.send(&self.shared);
                for held in ends {
                    if self.connections.contains(held.connection)
                        && !self.connections[held.connection].touched
                    {
                        self.settle(held.connection);
                    }
                }
            }
        }
        if !self.writes.are_held() {
            self.is_busy = self.has_overlapped;
        }
    }

    /// Sends a connection's replies that may be sent, then closes it or waits for what it needs next.
    fn settle(&mut self, number: usize) {
        let pause_bytes = self.pause_bytes();
        let connection = &mut self.connections[number];
        connection.touched = false;
        connection.broken |= connection.pending_bytes() > self.shared.options.output_bytes_max;
        connection.end_round();
        if !connection.broken {
            self.meter.sent(connection.flush());
        }
        if connection.is_finished() {
            self.close(number);
            return;
        }
        if connection.output.is_empty() && connection.output.capacity() > 0 {
            let buffer = std::mem::take(&mut connection.output);
            if buffer.capacity() <= super::POOLED_BYTES_MAX && self.pool.len() < super::POOLED_BUFFERS_MAX {
                self.pool.push(buffer);
            }
        }
        connection.charge(&self.shared.memory);
        self.has_streams |= connection.long.is_some();
        if connection.charged <= SMALL_BYTES {
            self.shared.memory.end_favour(connection.session.id);
        }
        if connection.waits || connection.waits_since.is_some() {
            self.note_waiting(number);
        }
        let connection = &mut self.connections[number];
        connection.session.client.show(&connection.session, connection.active);
        connection.session.client.show_buffers(connection.input.len(), connection.pending_bytes());
        let may_resume = connection.long.is_none() && !connection.waits && !connection.awaits_answer;
        if (connection.unprocessed || !connection.deferred.is_empty())
            && may_resume
            && !connection.is_held
            && connection.pending_bytes() <= pause_bytes
        {
            self.resumable.push(number);
        }
        let wanted = connection.wanted(pause_bytes);
        if wanted != connection.interest {
            connection.interest = wanted;
            connection.broken |= self.poller.change(&connection.stream, number as u64, wanted).is_err();
            if connection.broken {
                self.close(number);
            }
        }
    }
}
