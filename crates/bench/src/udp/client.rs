//! The requests of one thread.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use alluvium_client::{Client, ClientError, ClientOptions, Operation, Request, Response, Status};
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::flight::{Flight, fly};
use super::{Outcome, UdpOptions};
use crate::cache::requests::Zipf;
use crate::error::BenchError;
use crate::random::{Random, mix};

/// One of how many responses is timed.
pub(super) const TIMED: usize = 8;
/// After how long a datagram is sent again: long enough for a server that waits for a processor.
const RESEND_AFTER: Duration = Duration::from_millis(200);

/// Keys and values of one call.
pub(super) struct Requests {
    pub(super) operations: Vec<(Operation, u64)>,
    /// One after the other, as the values.
    keys: Vec<u8>,
    key_bytes: usize,
    values: Vec<u8>,
    value_bytes: usize,
}

impl Requests {
    pub(super) fn new(options: &UdpOptions) -> Self {
        let (key_bytes, value_bytes) = (options.key_size as usize, options.value_size as usize);
        let (operations, keys, values) = Default::default();
        Self { operations, keys, key_bytes, values, value_bytes }
    }

    fn clear(&mut self) {
        self.operations.clear();
        self.keys.clear();
        self.values.clear();
    }

    fn push(&mut self, operation: Operation, item: u64) {
        self.operations.push((operation, item));
        self.keys.extend_from_slice(&item.to_le_bytes());
        self.keys.resize(self.operations.len() * self.key_bytes, 0xa5);
        let start = self.values.len();
        self.values.resize(start + self.value_bytes, 0x5a);
        self.values[start..start + 8].copy_from_slice(&mix(item).to_le_bytes());
    }

    pub(super) fn get(&self, number: usize) -> Request<'_> {
        let (operation, _) = self.operations[number];
        let value = &self.values[number * self.value_bytes..][..self.value_bytes];
        Request {
            operation,
            key: &self.keys[number * self.key_bytes..][..self.key_bytes],
            value: if operation.has_value() { value } else { &[] },
            opaque: 0,
            expiry_s: 0,
        }
    }

    fn is_right(&self, number: usize, response: &Response<'_>) -> bool {
        let (operation, item) = self.operations[number];
        match (operation, response.status) {
            (Operation::Get, Status::Done) => {
                response.value.len() == self.value_bytes && response.value[..8] == mix(item).to_le_bytes()
            }
            (Operation::Get, Status::Absent) | (Operation::Set, Status::Done) => true,
            _ => false,
        }
    }
}

fn connect(options: &UdpOptions, server: SocketAddr) -> Result<Client, BenchError> {
    let given = ClientOptions {
        deadline: Duration::from_secs(10),
        resend_after: RESEND_AFTER,
        requests_per_datagram_max: options.batch,
        datagrams_in_flight_max: options.window(),
    };
    Client::with_options(server, given).map_err(BenchError::Io)
}

/// A call to the server, with a client of its own.
struct Call<'a> {
    client: Client,
    requests: Requests,
    source: Source<'a>,
    due: Instant,
    outcome: Outcome,
}

/// Where the requests of a call come from.
pub(super) struct Source<'a> {
    options: &'a UdpOptions,
    random: Random,
    zipf: Option<(&'a Zipf, SmallRng)>,
    gets_of_2_32: u64,
}

impl<'a> Source<'a> {
    /// The source of a call of this number.
    pub(super) fn new(options: &'a UdpOptions, zipf: Option<&'a Zipf>, call: u64) -> Self {
        Self {
            options,
            random: Random::new(options.seed, call),
            zipf: zipf.map(|zipf| (zipf, SmallRng::seed_from_u64(mix(options.seed ^ mix(call))))),
            gets_of_2_32: (options.get_share * (1_u64 << 32) as f64) as u64,
        }
    }

    /// Draws the requests of a call.
    pub(super) fn fill(&mut self, requests: &mut Requests) {
        let Self { options, random, zipf, gets_of_2_32 } = self;
        requests.clear();
        for _ in 0..options.batch * options.window() {
            let is_get = random.below(1 << 32) < *gets_of_2_32;
            let operation = if is_get { Operation::Get } else { Operation::Set };
            let item = match zipf {
                None => random.below(options.items),
                Some((zipf, random)) => u64::from(zipf.draw(random)),
            };
            requests.push(operation, item);
        }
    }
}

impl Flight for Call<'_> {
    fn begin(&mut self, due: Instant) {
        self.due = due;
        self.source.fill(&mut self.requests);
        self.client.begin(self.requests.operations.len());
    }

    fn advance(&mut self) -> Result<bool, BenchError> {
        let Self { client, requests, due, outcome, .. } = self;
        advance(client, requests, *due, outcome)
    }
}

/// Sends and receives without waiting, and checks all answers; returns whether the call has ended.
fn advance(
    client: &mut Client,
    requests: &Requests,
    due: Instant,
    outcome: &mut Outcome,
) -> Result<bool, BenchError> {
    let mut wrong = None;
    let mut answered = 0;
    let few = requests.operations.len() < TIMED;
    // Of one moment: all that is read at once has come before.
    let mut elapsed = None;
    let mut each = |number: usize, answer: Result<Response<'_>, ClientError>| {
        match answer {
            Ok(response) if requests.is_right(number, &response) => {
                outcome.absent += u64::from(response.status == Status::Absent);
            }
            Ok(response) => wrong = Some(format!("{:?}: {response:?}", requests.operations[number])),
            Err(error) => wrong = Some(error.to_string()),
        }
        answered += 1;
        if few || answered % TIMED == 0 {
            outcome.latencies.record(*elapsed.get_or_insert_with(|| due.elapsed()));
        }
    };
    let has_ended = client.advance_by(&|number| requests.get(number), &mut each).map_err(BenchError::Io)?;
    outcome.requests += answered as u64;
    wrong.map_or(Ok(has_ended), |wrong| Err(BenchError::WrongAnswer(wrong)))
}

/// Stores the thread's share of the items.
pub(super) fn load(options: &UdpOptions, server: SocketAddr, thread: u64) -> Result<Outcome, BenchError> {
    let mut client = connect(options, server)?;
    let mut outcome = Outcome::default();
    let mut requests = Requests::new(options);
    let mut item = thread;
    while item < options.items {
        requests.clear();
        while requests.operations.len() < options.batch * options.window() && item < options.items {
            requests.push(Operation::Set, item);
            item += options.threads;
        }
        client.begin(requests.operations.len());
        let begun = Instant::now();
        while !advance(&mut client, &requests, begun, &mut outcome)? {
            std::thread::yield_now();
        }
    }
    Ok(outcome)
}

/// Sends gets and sets of random items for a time.
pub(super) fn drive(
    options: &UdpOptions,
    zipf: Option<&Zipf>,
    server: SocketAddr,
    thread: u64,
) -> Result<Outcome, BenchError> {
    let calls = (0..options.calls as u64).map(|call| {
        Ok(Call {
            client: connect(options, server)?,
            requests: Requests::new(options),
            source: Source::new(options, zipf, thread * options.calls as u64 + call),
            due: Instant::now(),
            outcome: Outcome::default(),
        })
    });
    let mut calls: Vec<Call<'_>> = calls.collect::<Result<_, BenchError>>()?;
    fly(&mut calls, options.seconds, options.call_interval())?;
    let mut all = Outcome::default();
    for Call { client, mut outcome, .. } in calls {
        let statistics = client.statistics();
        (outcome.datagrams, outcome.resent) = (statistics.sent, statistics.resent);
        all.add(&outcome);
    }
    Ok(all)
}
