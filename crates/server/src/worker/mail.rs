//! What other threads have put into a worker's inbox: connections, answers, messages.

use std::sync::Arc;
use std::time::Instant;

use alluvium_protocol::{Parser, memcached};

use super::Worker;
use crate::answer::Answer;
use crate::connection::Connection;
use crate::mail::Address;
use crate::readiness::Interest;

/// Maximum number of bytes that wait for a client that does not read its messages, as for subscribers in Redis.
pub(super) const UNREAD_MESSAGE_BYTES_MAX: usize = 32 << 20;

impl Worker {
    pub(super) fn take_arrivals(&mut self) {
        let arrivals = self.inbox.take_arrivals();
        for (stream, session) in arrivals {
            let parser = Parser::new(self.shared.options.limits);
            let id = session.id;
            let memcached = memcached::Parser::new(self.shared.options.memcached_limits);
            let number = self.connections.insert(Connection::new(stream, session, parser, memcached));
            let inbox = Arc::clone(&self.inbox);
            self.connections[number].session.client.set_connection(number);
            self.connections[number].session.address =
                Some(Address { inbox, connection: number, session: id });
            if self.poller.add(&self.connections[number].stream, number as u64, Interest::READ).is_err() {
                self.forget(number);
            }
        }
    }

    /// Sends the answers that have arrived to the connections that wait for them, and continues with their next
    /// requests.
    pub(super) fn take_answers(&mut self) {
        let answers = self.inbox.take_answers();
        for Answer { connection: number, session, outcome } in answers {
            if !self.connections.contains(number) || self.connections[number].session.id != session {
                continue;
            }
            self.touch(number);
            let connection = &mut self.connections[number];
            connection.awaits_answer = false;
            connection.active = Instant::now();
            match outcome {
                Ok(finding) => finding.write(&mut connection.reply()),
                Err(text) => connection.reply().error(text),
            }
            self.process_input(number);
        }
    }

    /// Appends the messages that have arrived to what is sent to their recipients.
    pub(super) fn take_messages(&mut self) {
        let messages = self.inbox.take_messages();
        for message in messages.waiting {
            for &(number, session) in &message.recipients {
                if !self.connections.contains(number) {
                    continue;
                }
                let session_now = &self.connections[number].session;
                // It may have unsubscribed meanwhile, or be another client.
                if session_now.id == session && message.concerns(session_now) {
                    self.touch(number);
                    message.write(&mut self.connections[number].reply());
                    self.bound_messages(number);
                }
            }
        }
        if messages.is_incomplete {
            let numbers: Vec<usize> = self.connections.numbers().collect();
            for number in numbers {
                if self.connections[number].session.takes_messages() {
                    self.touch(number);
                    self.connections[number].broken = true;
                }
            }
        }
    }
}
