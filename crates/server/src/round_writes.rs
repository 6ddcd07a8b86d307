//! [`RoundWrites`]: the writes of a worker's rounds, and the replies that wait for a commit.
//!
//! A round that needs a commit is held: its replies stay in the buffers of their connections, marked as not to be sent,
//! while the worker begins the next round. Commits end in their order, and so do held rounds; as long as there is
//! one, each later round waits as well. So the replies of a connection, and the messages of a publisher, keep their
//! order.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::Instant;

use crate::commits::{Commits, Outcome, Ticket};
use crate::connections::Connections;
use crate::mail::Outbox;

/// The replies to writes. They are in the connections' buffers, and are sent after the commit.
#[derive(Default)]
pub(crate) struct RoundWrites {
    /// Those of the present round, in the order of execution, so those of one connection ascend.
    replies: Vec<WriteReply>,
    is_begun: bool,
    /// Old to young.
    held: VecDeque<HeldRound>,
}

/// Where the reply to a write is, counted from the first reply of its connection.
#[derive(Debug)]
struct WriteReply {
    connection: usize,
    session: u64,
    bytes: Range<u64>,
}

/// A round, or several, whose replies wait for a commit.
pub(crate) struct HeldRound {
    ticket: Ticket,
    replies: Vec<WriteReply>,
    ends: Vec<HeldEnd>,
    /// Messages that are sent after the commit.
    pub(crate) outbox: Outbox,
    /// When the first of the rounds ended.
    pub(crate) begun: Instant,
    /// Number of writes that the meter has noted for it.
    pub(crate) metered: usize,
}

/// How far the replies of a connection may be sent after the commit.
pub(crate) struct HeldEnd {
    pub(crate) connection: usize,
    pub(crate) session: u64,
    end: u64,
}

impl RoundWrites {
    /// Must be called before a write of the round is executed.
    pub(crate) fn begin(&mut self, commits: &Commits) {
        if !self.is_begun {
            self.is_begun = true;
            commits.begin();
        }
    }

    /// Notes the reply to a write, at `bytes` counted from the first reply of the connection.
    pub(crate) fn add(&mut self, connection: usize, session: u64, bytes: Range<u64>) {
        self.replies.push(WriteReply { connection, session, bytes });
    }

    /// Whether [`RoundWrites::begin`] was called in this round; forgets that.
    pub(crate) fn take_begun(&mut self) -> bool {
        std::mem::take(&mut self.is_begun)
    }

    /// Whether earlier rounds wait for a commit.
    pub(crate) fn are_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Ends the present round after its commit. If that has failed, the replies to writes become errors.
    pub(crate) fn end(&mut self, connections: &mut Connections, outcome: &Outcome) {
        fail(&mut self.replies, connections, outcome);
        self.replies.clear();
    }

    /// Lets the present round wait for a commit, with the replies of `touched` that are not sent.
    pub(crate) fn hold(
        &mut self,
        ticket: Ticket,
        connections: &mut Connections,
        touched: &[usize],
        outbox: &mut Outbox,
        metered: usize,
    ) {
        if self.held.back().is_none_or(|round| round.ticket != ticket) {
            let (replies, ends, outbox) = Default::default();
            self.held.push_back(HeldRound {
                ticket,
                replies,
                ends,
                outbox,
                begun: Instant::now(),
                metered: 0,
            });
        }
        let round = self.held.back_mut().expect("one was pushed");
        round.replies.append(&mut self.replies);
        round.outbox.append(outbox);
        round.metered += metered;
        for &number in touched {
            let connection = &mut connections[number];
            if connection.hold() {
                let (session, end) = (connection.session.id, connection.output_end());
                round.ends.push(HeldEnd { connection: number, session, end });
            }
        }
    }

    /// Takes the oldest held round if its commit, or a later one, has ended with `outcome`. Its replies may be sent
    /// then, as errors if the commit has failed. Returns it with the connections that have some.
    pub(crate) fn release(
        &mut self,
        connections: &mut Connections,
        ended: Ticket,
        outcome: &Outcome,
    ) -> Option<(HeldRound, Vec<HeldEnd>)> {
        if self.held.front()?.ticket > ended {
            return None;
        }
        let mut round = self.held.pop_front()?;
        let grown = fail(&mut round.replies, connections, outcome);
        if !grown.is_empty() {
            self.shift(&mut round.ends, &grown);
        }
        let mut ends = std::mem::take(&mut round.ends);
        ends.retain(|held| {
            connections.contains(held.connection) && connections[held.connection].session.id == held.session
        });
        for held in &ends {
            connections[held.connection].release(held.end);
        }
        Some((round, ends))
    }

    /// Moves what is known of replies behind those that were replaced: by as many bytes as these have `grown` in each
    /// session.
    fn shift(&mut self, ends: &mut [HeldEnd], grown: &HashMap<u64, i64>) {
        let by = |session: &u64| grown.get(session).copied().unwrap_or(0);
        let later = self.held.iter_mut();
        let (mut later_ends, mut later_replies) = (Vec::new(), Vec::new());
        for round in later {
            later_ends.extend(round.ends.iter_mut());
            later_replies.extend(round.replies.iter_mut());
        }
        for held in ends.iter_mut().chain(later_ends) {
            held.end = held.end.saturating_add_signed(by(&held.session));
        }
        for reply in later_replies.into_iter().chain(&mut self.replies) {
            let by = by(&reply.session);
            reply.bytes.start = reply.bytes.start.saturating_add_signed(by);
            reply.bytes.end = reply.bytes.end.saturating_add_signed(by);
        }
    }
}

/// Replaces replies by errors if the commit has failed. Returns by how many bytes those of each session have grown.
fn fail(
    replies: &mut Vec<WriteReply>,
    connections: &mut Connections,
    outcome: &Outcome,
) -> HashMap<u64, i64> {
    let mut grown = HashMap::new();
    if let Err(text) = outcome {
        // From back to front: what comes after a reply moves with it.
        for WriteReply { connection: number, session, bytes } in replies.drain(..).rev() {
            if connections.contains(number) && connections[number].session.id == session {
                *grown.entry(session).or_insert(0) += connections[number].replace_by_error(bytes, text);
            }
        }
    }
    grown
}

#[cfg(test)]
#[path = "round_writes_test.rs"]
mod tests;
