//! [`Client`].

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use alluvium_io::datagrams::{Burst, Datagrams, Outgoing, SystemDatagrams};
use alluvium_io::{Clock, SystemClock};
use alluvium_protocol::datagram::{
    Content, DATAGRAM_BYTES_MAX, Header, Kind, Operation, Request, Response, Status,
};

use crate::call::Call;
use crate::direction::Direction;
use crate::{ClientError, ClientOptions, ClientStatistics};

/// Messages that are received by one call.
const BURST_SLOTS: usize = 8;
/// Bytes of datagrams that are sent by one call.
const ARENA_BYTES: usize = 128 << 10;
/// How long a client waits for datagrams before it looks whether one is to be sent again.
const WAIT_MAX: Duration = Duration::from_millis(1);

/// A client of one server. Takes 640 KiB and 1.5 KiB for each datagram in flight.
#[derive(Debug)]
pub struct Client<D = SystemDatagrams> {
    socket: D,
    burst: Burst,
    outgoing: Outgoing,
    clock: Arc<dyn Clock>,
    options: ClientOptions,
    direction: Direction,
    call: Call,
    statistics: ClientStatistics,
}

impl Client {
    /// A client of the server whose first port for datagrams is this. Nothing is sent before the first request.
    ///
    /// # Errors
    /// Those of the system.
    pub fn connect(server: SocketAddr) -> io::Result<Self> {
        Self::with_options(server, ClientOptions::default())
    }

    /// Like [`Client::connect`], with other options.
    ///
    /// # Errors
    /// Those of the system.
    pub fn with_options(server: SocketAddr, options: ClientOptions) -> io::Result<Self> {
        let ip: IpAddr = match server {
            SocketAddr::V4(server) if server.ip().is_loopback() => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = SystemDatagrams::bind(SocketAddr::new(ip, 0))?;
        Ok(Self::on(socket, server, Arc::new(SystemClock::default()), options))
    }
}

impl<D: Datagrams> Client<D> {
    /// A client with a socket and a clock of the caller's choice.
    pub fn on(socket: D, server: SocketAddr, clock: Arc<dyn Clock>, options: ClientOptions) -> Self {
        Self {
            socket,
            burst: Burst::new(BURST_SLOTS),
            outgoing: Outgoing::new(ARENA_BYTES),
            clock,
            options,
            direction: Direction::new(server),
            call: Call::default(),
            statistics: ClientStatistics::default(),
        }
    }

    /// What was sent and received.
    pub fn statistics(&self) -> ClientStatistics {
        self.statistics
    }

    /// Sends requests and calls `each` once for each of them, with its number and answer, in any order. The opaque
    /// numbers of the requests are not used. Requests of one call have no order among them, also for one key.
    ///
    /// # Errors
    /// When the socket fails; `each` was then not called for all.
    pub fn execute(
        &mut self,
        requests: &[Request<'_>],
        mut each: impl FnMut(usize, Result<Response<'_>, ClientError>),
    ) -> io::Result<()> {
        self.begin(requests.len());
        while !self.advance(requests, &mut each)? {
            let wait = self.options.resend_after.min(WAIT_MAX);
            self.socket.wait(wait)?;
        }
        Ok(())
    }

    /// Begins a call with this number of requests. For those who wait themselves; others use [`Client::execute`].
    pub fn begin(&mut self, requests: usize) {
        let ClientOptions { deadline, requests_per_datagram_max, datagrams_in_flight_max, .. } = self.options;
        let deadline = self.clock.monotonic().saturating_add(deadline);
        self.call.begin(requests, datagrams_in_flight_max, requests_per_datagram_max, deadline);
    }

    /// Takes the replies that have come, and sends what can be sent, without waiting. `requests` are the same in all
    /// calls after a [`Client::begin`]. Returns whether all have their answers.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn advance(
        &mut self,
        requests: &[Request<'_>],
        each: &mut dyn FnMut(usize, Result<Response<'_>, ClientError>),
    ) -> io::Result<bool> {
        self.advance_by(&|number| requests[number], each)
    }

    /// Like [`Client::advance`], with a function that returns the request of a number.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn advance_by<'r>(
        &mut self,
        request_of: &dyn Fn(usize) -> Request<'r>,
        each: &mut dyn FnMut(usize, Result<Response<'_>, ClientError>),
    ) -> io::Result<bool> {
        while self.call.left > 0 && self.socket.receive_burst(&mut self.burst)? > 0 {
            self.take_replies(each);
        }
        if self.call.left == 0 {
            return Ok(true);
        }
        let now = self.clock.monotonic();
        if now >= self.call.deadline {
            self.statistics.unanswered += self.call.give_up(each);
            return Ok(true);
        }
        let Self { socket, outgoing, direction, call, statistics, options, .. } = self;
        let mut failed = None;
        let mut send = |peer: SocketAddr, bytes: &[u8]| {
            if outgoing.room(DATAGRAM_BYTES_MAX).is_none()
                && let Err(error) = socket.send_burst(outgoing)
            {
                failed.get_or_insert(error);
                outgoing.clear();
            }
            if let Some(room) = outgoing.room(bytes.len()) {
                room.copy_from_slice(bytes);
                outgoing.commit(peer, bytes.len());
                statistics.sent += 1;
            }
        };
        if direction.is_due(now, options.resend_after) {
            let mut question = [0; DATAGRAM_BYTES_MAX];
            let sequence = call.next_sequence(0);
            let len = direction.ask(now, sequence, &mut question);
            send(direction.server(), &question[..len]);
        }
        if direction.is_known() {
            let resent = call.resend(now, options.resend_after, &mut send);
            call.fill(now, direction, request_of, each, &mut send);
            statistics.resent += resent;
        }
        socket.send_burst(outgoing)?;
        failed.map_or(Ok(call.left == 0), Err)
    }

    fn take_replies(&mut self, each: &mut dyn FnMut(usize, Result<Response<'_>, ClientError>)) {
        let Self { burst, direction, call, statistics, .. } = self;
        for (peer, bytes) in burst.datagrams() {
            let Ok((header, content)) = Header::decode(bytes) else {
                statistics.unexpected += 1;
                continue;
            };
            let is_expected = match header.kind {
                Kind::Directory => {
                    let is_new = direction.learn(peer, &header, content);
                    if is_new {
                        statistics.directories += 1;
                        call.take_all_back();
                    }
                    is_new
                }
                kind => match call.waiting(direction, peer, header.sequence) {
                    None => false,
                    Some(slot) => take_reply(direction, call, slot, kind, &header, content, each),
                },
            };
            statistics.unexpected += u64::from(!is_expected);
        }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, ClientError> {
        let mut values = self.get_many(&[key])?;
        Ok(values.pop().flatten())
    }

    /// The values of several keys, in their order.
    ///
    /// # Errors
    /// [`ClientError`], if there is one for any of the keys.
    pub fn get_many(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, ClientError> {
        let requests: Vec<Request<'_>> = keys.iter().map(|key| request(Operation::Get, key)).collect();
        let mut values = vec![None; keys.len()];
        let mut failed = None;
        self.execute(&requests, |number, answer| match checked(answer) {
            Ok(response) if response.status == Status::Done => values[number] = Some(response.value.to_vec()),
            Ok(_) => {}
            Err(error) => failed = Some(error),
        })?;
        failed.map_or(Ok(values), Err)
    }

    /// Sets the value of a key, which expires after this many seconds, or never after 0.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn set(&mut self, key: &[u8], value: &[u8], expiry_s: u32) -> Result<(), ClientError> {
        self.one(Request { value, expiry_s, ..request(Operation::Set, key) }).map(drop)
    }

    /// Sets the value of a key that has none; returns whether it had none. If the network has doubled the request, it
    /// may say that there was one although this request has set it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn add(&mut self, key: &[u8], value: &[u8], expiry_s: u32) -> Result<bool, ClientError> {
        let status = self.one(Request { value, expiry_s, ..request(Operation::Add, key) })?;
        Ok(status == Status::Done)
    }

    /// Removes the item of a key; returns whether there was one, as far as is known: see [`Client::add`].
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, ClientError> {
        Ok(self.one(request(Operation::Delete, key))? == Status::Done)
    }

    /// Lets the item of a key expire after this many seconds, or never after 0; returns whether there is one.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn touch(&mut self, key: &[u8], expiry_s: u32) -> Result<bool, ClientError> {
        let status = self.one(Request { expiry_s, ..request(Operation::Touch, key) })?;
        Ok(status == Status::Done)
    }

    /// Whether a key has an item.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn contains(&mut self, key: &[u8]) -> Result<bool, ClientError> {
        Ok(self.one(request(Operation::Probe, key))? == Status::Done)
    }

    fn one(&mut self, request: Request<'_>) -> Result<Status, ClientError> {
        let mut status = Err(ClientError::Unanswered);
        self.execute(&[request], |_, answer| status = checked(answer).map(|response| response.status))?;
        status
    }
}

/// Takes a reply to the datagram of a slot. Returns whether it is one.
fn take_reply(
    direction: &mut Direction,
    call: &mut Call,
    slot: usize,
    kind: Kind,
    header: &Header,
    content: &[u8],
    each: &mut dyn FnMut(usize, Result<Response<'_>, ClientError>),
) -> bool {
    match kind {
        Kind::Responses => Content::responses(content, header.count).is_ok_and(|responses| {
            if direction.hands_over() {
                call.take_some(slot, responses, each)
            } else {
                call.take(slot, responses, each)
            }
        }),
        Kind::Moved | Kind::NoCookie => {
            direction.forget();
            call.take_back(slot);
            true
        }
        _ => false,
    }
}

fn request(operation: Operation, key: &[u8]) -> Request<'_> {
    Request { operation, key, value: &[], opaque: 0, expiry_s: 0 }
}

fn checked(answer: Result<Response<'_>, ClientError>) -> Result<Response<'_>, ClientError> {
    let response = answer?;
    match response.status {
        Status::TooLarge => Err(ClientError::TooLarge),
        Status::Failed => Err(ClientError::Failed),
        _ => Ok(response),
    }
}
