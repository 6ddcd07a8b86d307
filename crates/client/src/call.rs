//! [`Call`]: the requests of one call that have no answer yet.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use alluvium_protocol::datagram::{Content, Request, Response, Status};

use crate::direction::{Destination, Direction};
use crate::error::ClientError;
use crate::slot::Slot;

/// The requests of one call that have no answer yet. Its memory is used again for the next call.
#[derive(Debug, Default)]
pub(crate) struct Call {
    pub(crate) slots: Vec<Slot>,
    /// Numbers of slots that are not in use.
    free: Vec<usize>,
    /// Slots with room for more requests, which have not been sent.
    open: Vec<usize>,
    /// Slots without room, which have not been sent.
    full: Vec<usize>,
    /// Requests that are in no slot.
    pending: VecDeque<u32>,
    is_answered: Vec<bool>,
    pub(crate) left: usize,
    pub(crate) deadline: Duration,
    /// Maximum requests in a datagram, so that all values have room in the reply.
    requests_max: usize,
    /// Number of datagrams that were begun, for sequences.
    begun: u32,
}

/// Number of slots at most: the low bits of a sequence are the number of a slot.
const SLOTS_MAX: usize = 256;

impl Call {
    /// Begins a call with `requests` requests.
    pub(crate) fn begin(&mut self, requests: usize, slots: usize, requests_max: usize, deadline: Duration) {
        let slots = slots.clamp(1, SLOTS_MAX);
        self.slots.truncate(slots);
        self.is_answered.clear();
        self.is_answered.resize(requests, false);
        self.pending.clear();
        self.pending.extend(0..requests as u32);
        self.free.clear();
        self.free.extend((0..slots).rev());
        self.open.clear();
        self.full.clear();
        self.left = requests;
        self.deadline = deadline;
        self.requests_max = requests_max.clamp(1, 255);
        for slot in &mut self.slots {
            slot.sent_at = None;
        }
    }

    /// The next sequence of a datagram in this slot.
    pub(crate) fn next_sequence(&mut self, slot: usize) -> u32 {
        self.begun = self.begun.wrapping_add(1);
        self.begun << 8 | slot as u32
    }

    /// Puts requests into datagrams, as far as there are slots; `send` is called with each datagram that is ready.
    pub(crate) fn fill<'r>(
        &mut self,
        now: Duration,
        direction: &mut Direction,
        request_of: &dyn Fn(usize) -> Request<'r>,
        each: &mut dyn FnMut(usize, Result<Response<'_>, ClientError>),
        send: &mut dyn FnMut(SocketAddr, &[u8]),
    ) {
        let bytes_max = direction.datagram_bytes_max();
        while let Some(number) = self.pending.front().copied() {
            let request = &request_of(number as usize);
            let Some(destination) = direction.destination(request) else { break };
            let open = self.open.iter().position(|slot| match (destination, &self.slots[*slot]) {
                (Destination::Any, slot) => slot.is_for_any,
                (Destination::Owner(peer), slot) => !slot.is_for_any && slot.peer == peer,
            });
            if let Some(position) = open {
                let slot = self.open[position];
                let has_room = self.slots[slot].requests.len() < self.requests_max
                    && self.slots[slot].add(number, request, bytes_max);
                if has_room {
                    self.pending.pop_front();
                } else {
                    self.open.swap_remove(position);
                    self.full.push(slot);
                }
                continue;
            }
            let Some(slot) = self.free.pop() else { break };
            let (peer, is_for_any) = match destination {
                Destination::Any => (direction.next_worker(), true),
                Destination::Owner(peer) => (peer, false),
            };
            while self.slots.len() <= slot {
                self.slots.push(Slot::new(peer));
            }
            let sequence = self.next_sequence(slot);
            self.slots[slot].begin(peer, is_for_any, sequence);
            if self.slots[slot].add(number, request, bytes_max) {
                self.pending.pop_front();
                self.open.push(slot);
            } else {
                self.free.push(slot);
                self.pending.pop_front();
                self.answer(number, Err(ClientError::TooLarge), each);
            }
        }
        // Those for one worker after each other: they are a train.
        self.full.append(&mut self.open);
        let Self { full, slots, .. } = self;
        full.sort_unstable_by_key(|slot| (slots[*slot].peer.port(), slots[*slot].sequence));
        for slot in full.drain(..) {
            let slot = &mut slots[slot];
            slot.finish(direction.header(slot.sequence), bytes_max);
            slot.sent(now);
            send(slot.peer, slot.datagram());
        }
    }

    /// Calls `send` with each datagram that has waited too long; returns their number.
    pub(crate) fn resend(
        &mut self,
        now: Duration,
        after: Duration,
        send: &mut dyn FnMut(SocketAddr, &[u8]),
    ) -> u64 {
        let mut resent = 0;
        for slot in self.slots.iter_mut().filter(|slot| slot.is_due(now, after)) {
            slot.sent(now);
            send(slot.peer, slot.datagram());
            resent += 1;
        }
        resent
    }

    /// The number of the slot whose datagram waits for a reply with this sequence from this peer.
    pub(crate) fn waiting(&self, direction: &Direction, peer: SocketAddr, sequence: u32) -> Option<usize> {
        let number = sequence as usize % SLOTS_MAX;
        let slot = self.slots.get(number)?;
        let is_awaited = slot.sent_at.is_some() && slot.sequence == sequence;
        (is_awaited && (slot.peer == peer || direction.may_answer(peer))).then_some(number)
    }

    /// Takes the responses to the datagram of a slot. Returns `false` if they are not those to its requests.
    pub(crate) fn take(
        &mut self,
        slot: usize,
        responses: Content<'_, Response<'_>>,
        each: &mut dyn FnMut(usize, Result<Response<'_>, ClientError>),
    ) -> bool {
        let numbers = std::mem::take(&mut self.slots[slot].requests);
        let is_right = responses.len() == numbers.len()
            && responses.clone().zip(&numbers).all(|(response, number)| response.opaque == *number);
        if is_right {
            let mut with_room = 0;
            responses.for_each(|response| self.take_one(&mut with_room, response, each));
        }
        self.slots[slot].requests = numbers;
        if is_right {
            self.release(slot);
        }
        is_right
    }

    /// Takes the responses to some requests of the datagram of a slot; those to others follow from other workers.
    /// Returns `false` if no request waited for any of them.
    pub(crate) fn take_some(
        &mut self,
        slot: usize,
        responses: Content<'_, Response<'_>>,
        each: &mut dyn FnMut(usize, Result<Response<'_>, ClientError>),
    ) -> bool {
        let mut numbers = std::mem::take(&mut self.slots[slot].requests);
        let (before, mut with_room) = (numbers.len(), 0);
        for response in responses {
            if let Some(position) = numbers.iter().position(|number| *number == response.opaque) {
                numbers.remove(position);
                self.take_one(&mut with_room, response, each);
            }
        }
        let (is_right, is_whole) = (numbers.len() < before, numbers.is_empty());
        self.slots[slot].requests = numbers;
        if is_whole {
            self.release(slot);
        }
        is_right
    }

    fn take_one(
        &mut self,
        with_room: &mut usize,
        response: Response<'_>,
        each: &mut dyn FnMut(usize, Result<Response<'_>, ClientError>),
    ) {
        if response.status == Status::NoRoom {
            // A datagram with one request has room for what fits into any.
            self.requests_max = self.requests_max.min(*with_room).max(1);
            self.pending.push_back(response.opaque);
        } else {
            *with_room += 1;
            self.answer(response.opaque, Ok(response), each);
        }
    }

    /// Puts the requests of the datagram of a slot into other ones.
    pub(crate) fn take_back(&mut self, slot: usize) {
        self.pending.extend(self.slots[slot].requests.iter());
        self.release(slot);
    }

    /// Puts the requests of all datagrams that wait into other ones.
    pub(crate) fn take_all_back(&mut self) {
        for slot in 0..self.slots.len() {
            if self.slots[slot].sent_at.is_some() {
                self.take_back(slot);
            }
        }
    }

    fn release(&mut self, slot: usize) {
        self.slots[slot].sent_at = None;
        self.free.push(slot);
    }

    fn answer(
        &mut self,
        number: u32,
        answer: Result<Response<'_>, ClientError>,
        each: &mut dyn FnMut(usize, Result<Response<'_>, ClientError>),
    ) {
        if let Some(is_answered) = self.is_answered.get_mut(number as usize)
            && !std::mem::replace(is_answered, true)
        {
            self.left -= 1;
            each(number as usize, answer);
        }
    }

    /// Ends the call: requests without an answer get none. Returns their number.
    pub(crate) fn give_up(&mut self, each: &mut dyn FnMut(usize, Result<Response<'_>, ClientError>)) -> u64 {
        let left = self.left as u64;
        for number in 0..self.is_answered.len() as u32 {
            self.answer(number, Err(ClientError::Unanswered), each);
        }
        for slot in &mut self.slots {
            slot.sent_at = None;
        }
        left
    }
}
