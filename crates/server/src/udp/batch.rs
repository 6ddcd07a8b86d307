//! [`Batch`]: requests of a burst, with the gets that are looked up together.

use std::net::SocketAddr;

use alluvium_cache::BATCH_LEN;
use alluvium_io::datagrams::Datagrams;
use alluvium_protocol::datagram::{Header, Operation, Request, Response, Status};

use super::counters::Counters;
use super::items::Items;
use super::replies::Replies;

/// Maximum number of steps that wait for lookups.
const STEPS_MAX: usize = 512;

/// What is to be written to replies, in the order of the requests.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A reply begins.
    Begin { peer: SocketAddr, sequence: u32, requests: usize },
    /// The response to the next get that is looked up.
    Get { opaque: u32 },
    /// The response to a request that was executed.
    Done { status: Status, opaque: u32 },
    /// A reply ends. The client gets its cookie back, or the one of this hour.
    End { cookie: u32 },
}

/// The steps, whose memory is used again for each burst.
#[derive(Debug)]
pub(super) struct Steps(Vec<Step>);

impl Default for Steps {
    fn default() -> Self {
        Self(Vec::with_capacity(STEPS_MAX))
    }
}

#[cfg(test)]
impl Steps {
    pub(super) fn memory_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Step>()
    }
}

/// What a batch works with.
pub(super) struct Tools<'a, 'i, D> {
    pub socket: &'a mut D,
    pub replies: &'a mut Replies,
    pub counters: &'a Counters,
    pub items: &'a mut Items<'i>,
    pub epoch: u16,
}

/// Gets that wait to be looked up together, in the order of all requests. Writes are executed at once, so that those of
/// a key keep their order; a write of a key for which a get waits is executed after the get.
pub(super) struct Batch<'a, 'i, 'b, D> {
    tools: Tools<'a, 'i, D>,
    steps: &'a mut Vec<Step>,
    keys: [&'b [u8]; BATCH_LEN],
    len: usize,
    /// A bit for each key that waits, by [`mark`].
    marks: u64,
}

/// One of 64 bits by the end of a key, where most keys differ.
#[inline]
fn mark(key: &[u8]) -> u64 {
    let end = key.last_chunk::<8>().map_or_else(
        || key.iter().fold(1, |end: u64, byte| end << 8 | u64::from(*byte)),
        |end| u64::from_le_bytes(*end),
    );
    1 << (end.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58)
}

impl<'a, 'i, 'b, D: Datagrams> Batch<'a, 'i, 'b, D> {
    pub(super) fn new(tools: Tools<'a, 'i, D>, steps: &'a mut Steps) -> Self {
        steps.0.clear();
        Self { tools, steps: &mut steps.0, keys: [&[]; BATCH_LEN], len: 0, marks: 0 }
    }

    /// The requests of a datagram, which has `len` of them.
    #[inline]
    pub(super) fn execute(
        &mut self,
        peer: SocketAddr,
        header: &Header,
        len: usize,
        requests: impl Iterator<Item = Request<'b>>,
    ) {
        self.push(Step::Begin { peer, sequence: header.sequence, requests: len });
        for request in requests {
            self.add(&request);
        }
        self.push(Step::End { cookie: header.cookie });
    }

    /// Answers requests as if they had been executed.
    #[cfg(test)]
    pub(super) fn pretend(
        &mut self,
        peer: SocketAddr,
        header: &Header,
        requests: impl Iterator<Item = Request<'b>> + Clone,
    ) {
        self.push(Step::Begin { peer, sequence: header.sequence, requests: requests.clone().count() });
        requests.for_each(|request| self.push(Step::Done { status: Status::Done, opaque: request.opaque }));
        self.push(Step::End { cookie: header.cookie });
    }

    /// The next request of the datagram.
    #[inline]
    fn add(&mut self, request: &Request<'b>) {
        let opaque = request.opaque;
        if request.operation == Operation::Get {
            if self.len == BATCH_LEN {
                self.look_up();
            }
            // The step first: if there is no room for it, all that wait are looked up, and this one does not yet.
            self.push(Step::Get { opaque });
            self.keys[self.len] = request.key;
            self.len += 1;
            self.marks |= mark(request.key);
            return;
        }
        let may_wait = self.marks & mark(request.key) != 0;
        if may_wait && request.operation.is_write() && self.keys[..self.len].contains(&request.key) {
            self.look_up();
        }
        let status = self.tools.items.execute(request);
        self.push(Step::Done { status, opaque });
    }

    /// A datagram that is answered without being executed. See [`Replies::add`].
    pub(super) fn answer(
        &mut self,
        peer: SocketAddr,
        header: Header,
        content: &[u8],
        bytes_max: usize,
    ) -> bool {
        // Replies are written one after the other.
        self.look_up();
        let Tools { socket, replies, counters, .. } = &mut self.tools;
        replies.add(*socket, counters, peer, header, content, bytes_max)
    }

    #[inline]
    fn push(&mut self, step: Step) {
        if self.steps.len() == STEPS_MAX {
            self.look_up();
        }
        self.steps.push(step);
    }

    /// Looks the gets up and writes all responses so far.
    pub(super) fn look_up(&mut self) {
        let Tools { socket, replies, counters, items, epoch } = &mut self.tools;
        let keys = &self.keys[..self.len];
        let mut steps = self.steps.iter();
        let mut until_get = |replies: &mut Replies| {
            for step in steps.by_ref() {
                match *step {
                    Step::Begin { peer, sequence, requests } => {
                        replies.begin(*socket, counters, peer, sequence, requests);
                    }
                    Step::Get { opaque } => return Some(opaque),
                    Step::Done { status, opaque } => replies.respond(&Response::bare(status, opaque)),
                    Step::End { cookie } => replies.end(*epoch, cookie),
                }
            }
            None
        };
        if !keys.is_empty() {
            let outcome = items.database.get_many(keys, &mut |_, found| {
                let Some(opaque) = until_get(replies) else { return };
                let response = match found {
                    None => Response::bare(Status::Absent, opaque),
                    Some(found) => match found.string() {
                        Some(value) => Response { status: Status::Done, opaque, value },
                        None => Response::bare(Status::Failed, opaque),
                    },
                };
                replies.respond(&response);
            });
            debug_assert!(outcome.is_ok() || self.len > 0);
        }
        // After a failure, the gets that are left get no value.
        while let Some(opaque) = until_get(replies) {
            replies.respond(&Response::bare(Status::Failed, opaque));
        }
        self.steps.clear();
        self.len = 0;
        self.marks = 0;
    }
}
