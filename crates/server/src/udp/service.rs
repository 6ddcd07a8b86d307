//! [`Service`]: receives a burst, executes its requests, and sends the replies.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use alluvium_io::datagrams::{Burst, Datagrams};
use alluvium_protocol::datagram::{Content, DATAGRAM_BYTES_MAX, Header, Kind, Malformed, Request};

use super::batch::{Batch, Steps, Tools};
use super::counters::{Counters, Figure};
use super::directing::Directing;
use super::handing::{Handing, Taken};
use super::items::Items;
use super::replies::Replies;

/// Messages that are received by one call: with the arena of the replies they take less than 2 MiB.
const BURST_SLOTS: usize = 28;

/// The datagrams of one worker. All memory is allocated at the start, less than 2 MiB: most of it to receive, of which
/// the system gives the pages that are used, and 128 KiB to send. What hands requests over takes 1 MiB more.
#[derive(Debug)]
pub(crate) struct Service<D> {
    socket: D,
    burst: Burst,
    replies: Replies,
    steps: Steps,
    directing: Arc<Directing>,
    /// Number of the worker.
    number: usize,
    /// Where workers hand requests over.
    handing: Option<Handing>,
    admitted: Option<Admitted>,
    /// A mistake that tests must find: requests that are handed over are answered before their owner executes them.
    #[cfg(test)]
    pub(super) answers_first: bool,
}

/// The peer whose cookie was checked last, which most often sends the next datagram, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Admitted {
    peer: SocketAddr,
    cookie: u32,
    hour: u64,
}

/// What happens to a datagram.
enum Verdict<'b> {
    Execute(Header, Content<'b, Request<'b>>),
    /// Other workers own some of the keys.
    HandOver(Header, Content<'b, Request<'b>>),
    Directory(Header),
    /// Answered by a header of this kind.
    Answer(Header, Kind),
    Drop,
}

impl<D: Datagrams> Service<D> {
    /// The datagrams of the worker of this number, with its ends of the rings where workers hand requests over.
    pub(crate) fn new(socket: D, directing: Arc<Directing>, number: usize, handing: Option<Handing>) -> Self {
        Self {
            socket,
            burst: Burst::new(BURST_SLOTS),
            replies: Replies::default(),
            steps: Steps::default(),
            directing,
            number,
            handing,
            admitted: None,
            #[cfg(test)]
            answers_first: false,
        }
    }

    /// Whether the last burst took all slots, so that more datagrams may wait, or another worker has handed some over.
    pub(crate) fn may_have_more(&self) -> bool {
        self.burst.is_full() || self.was_given_more()
    }

    /// Whether another worker has handed datagrams over.
    pub(crate) fn was_given_more(&self) -> bool {
        self.handing.as_ref().is_some_and(Handing::has_more)
    }

    /// Whether the worker may sleep until its socket has more, or it is woken: see [`Service::wake`].
    pub(crate) fn may_sleep(&self) -> bool {
        self.handing.as_ref().is_none_or(Handing::may_sleep)
    }

    /// Calls `wake` with the number of each worker that sleeps and to which something was handed over.
    pub(crate) fn wake(&mut self, wake: impl Fn(usize)) {
        if let Some(handing) = &mut self.handing {
            handing.wake(wake);
        }
    }

    /// The socket, for a poller.
    pub(crate) fn socket(&self) -> &D {
        &self.socket
    }

    /// Bytes of all that could grow.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        let handing = self.handing.as_ref().map_or(0, Handing::memory_bytes);
        self.burst.memory_bytes() + self.replies.memory_bytes() + self.steps.memory_bytes() + handing
    }

    /// Replaces what clients are told. Requests of those who know the former epoch are not executed.
    #[cfg(test)]
    pub(super) fn direct(&mut self, directing: Arc<Directing>) {
        self.directing = directing;
        self.admitted = None;
    }

    /// Receives a burst, takes what other workers have handed over, and answers both. Returns the number of datagrams,
    /// and of the requests that were executed. With `is_paused`, all datagrams are dropped; their clients send them
    /// again.
    ///
    /// # Errors
    /// When the socket fails.
    pub(crate) fn serve(
        &mut self,
        items: &mut Items<'_>,
        counters: &Counters,
        is_paused: bool,
    ) -> io::Result<(usize, u64)> {
        #[cfg(test)]
        let answers_first = self.answers_first;
        let Self { socket, burst, replies, steps, directing, number, handing, admitted, .. } = self;
        let received = socket.receive_burst(burst)?;
        let mut came = received;
        if let Some(handing) = handing {
            handing.take();
            came += handing.taken().len();
        }
        if came == 0 {
            counters.set_frames(socket.frames());
            return Ok((0, 0));
        }
        counters.add(Figure::Bursts, u64::from(received > 0));
        counters.add(Figure::Received, received as u64);
        counters.set(Figure::Dropped, socket.dropped());
        if is_paused {
            counters.add(Figure::Paused, came as u64);
            return Ok((came, 0));
        }
        let hour = directing.cookies.hour();
        let tools = Tools { socket: &mut *socket, replies, counters, items, epoch: directing.epoch };
        let mut batch = Batch::new(tools, steps);
        let mut executed = 0;
        let (mut giving, taken) = match handing {
            Some(handing) => {
                let (giving, taken) = handing.split();
                (Some(giving), Some(taken))
            }
            None => (None, None),
        };
        for (peer, bytes) in taken.into_iter().flat_map(Taken::datagrams) {
            // Another worker has found all in order, but for an epoch that ended meanwhile.
            let Ok((header, content)) = Header::decode(bytes) else { continue };
            match Content::requests(content, header.count) {
                Ok(requests) if header.epoch == directing.epoch => {
                    executed += u64::from(header.count);
                    batch.execute(peer, &header, requests.len(), requests);
                }
                _ => {
                    counters.add(Figure::Moved, 1);
                    let header = Header { kind: Kind::Moved, epoch: directing.epoch, ..header };
                    batch.answer(peer, header, &[], bytes.len());
                }
            }
        }
        for (peer, bytes) in burst.datagrams() {
            match verdict(directing, *number, admitted, counters, hour, peer, bytes) {
                Verdict::Execute(header, requests) => {
                    executed += u64::from(header.count);
                    batch.execute(peer, &header, requests.len(), requests);
                }
                Verdict::HandOver(header, requests) => {
                    let given = giving
                        .as_mut()
                        .and_then(|giving| giving.hand_over(directing, *number, peer, header, &requests));
                    let Some((given, left)) = given else {
                        counters.add(Figure::NoRing, 1);
                        continue;
                    };
                    counters.add(Figure::HandedOver, given as u64);
                    #[cfg(test)]
                    if answers_first {
                        let writes = requests.clone().filter(|request| request.operation.is_write());
                        batch.pretend(peer, &header, writes);
                    }
                    executed += left as u64;
                    if left > 0 {
                        let own = requests.filter(|request| directing.may_execute_one(*number, request));
                        batch.execute(peer, &header, left, own);
                    }
                }
                Verdict::Directory(header) => {
                    let cookie = directing.cookies.of(peer, hour);
                    let header = Header { kind: Kind::Directory, epoch: directing.epoch, cookie, ..header };
                    if !batch.answer(peer, header, &directing.encoded, bytes.len()) {
                        counters.add(Figure::Short, 1);
                    }
                }
                Verdict::Answer(header, kind) => {
                    // The cookie is not the peer's, or is known to it.
                    let header = Header { kind, epoch: directing.epoch, ..header };
                    batch.answer(peer, header, &[], bytes.len());
                }
                Verdict::Drop => {}
            }
        }
        batch.look_up();
        counters.add(Figure::Requests, executed);
        let sent = self.replies.send(&mut self.socket, counters);
        counters.set_frames(self.socket.frames());
        sent?;
        Ok((came, executed))
    }
}

/// What happens to a datagram. Nothing of it was executed so far, and a wrong one never is, not even in part.
#[inline]
fn verdict<'b>(
    directing: &Directing,
    number: usize,
    admitted: &mut Option<Admitted>,
    counters: &Counters,
    hour: u64,
    peer: SocketAddr,
    bytes: &'b [u8],
) -> Verdict<'b> {
    let drop_as = |figure| {
        counters.add(figure, 1);
        Verdict::Drop
    };
    let (header, content) = match Header::decode(bytes) {
        Ok(decoded) if bytes.len() <= DATAGRAM_BYTES_MAX => decoded,
        Ok(_) => return drop_as(Figure::Malformed),
        Err(Malformed::Short) => return drop_as(Figure::Short),
        Err(_) => return drop_as(Figure::Foreign),
    };
    match header.kind {
        Kind::Requests => {}
        Kind::AskDirectory => return Verdict::Directory(header),
        // Replies are never answered, so no two servers can be made to send to each other.
        _ => return drop_as(Figure::Foreign),
    }
    let asks = Admitted { peer, cookie: header.cookie, hour };
    if *admitted != Some(asks) {
        if !directing.cookies.accepts(peer, header.cookie, hour) {
            counters.add(Figure::WithoutCookie, 1);
            return Verdict::Answer(header, Kind::NoCookie);
        }
        *admitted = Some(asks);
    }
    if header.epoch != directing.epoch {
        counters.add(Figure::Moved, 1);
        return Verdict::Answer(header, Kind::Moved);
    }
    match Content::requests(content, header.count) {
        Ok(requests) if directing.may_execute(number, &requests) => Verdict::Execute(header, requests),
        Ok(requests) if directing.hands_over() => Verdict::HandOver(header, requests),
        Ok(_) => {
            counters.add(Figure::Misdirected, 1);
            Verdict::Answer(header, Kind::Moved)
        }
        Err(_) => drop_as(Figure::Malformed),
    }
}
