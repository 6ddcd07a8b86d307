//! The requests of one thread.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use alluvium_client::{Client, ClientError, ClientOptions, Operation, Request, Response, Status};

use super::{Outcome, UdpOptions};
use crate::error::BenchError;
use crate::random::{Random, mix};

/// One of how many responses is timed.
const TIMED: usize = 8;
/// After how long a datagram is sent again: long enough for a server that waits for a processor.
const RESEND_AFTER: Duration = Duration::from_millis(200);

/// Keys and values of one call.
struct Requests {
    operations: Vec<(Operation, u64)>,
    keys: Vec<[u8; 8]>,
    values: Vec<u8>,
    value_bytes: usize,
}

impl Requests {
    fn new(options: &UdpOptions) -> Self {
        let value_bytes = options.value_size as usize;
        Self { operations: Vec::new(), keys: Vec::new(), values: Vec::new(), value_bytes }
    }

    fn clear(&mut self) {
        self.operations.clear();
        self.keys.clear();
        self.values.clear();
    }

    fn push(&mut self, operation: Operation, item: u64) {
        self.operations.push((operation, item));
        self.keys.push(item.to_le_bytes());
        let start = self.values.len();
        self.values.resize(start + self.value_bytes, 0x5a);
        self.values[start..start + 8].copy_from_slice(&mix(item).to_le_bytes());
    }

    fn each(&self) -> impl Iterator<Item = Request<'_>> {
        let parts = self.operations.iter().zip(&self.keys).zip(self.values.chunks_exact(self.value_bytes));
        parts.map(|(((operation, _), key), value)| Request {
            operation: *operation,
            key,
            value: if operation.has_value() { value } else { &[] },
            opaque: 0,
            expiry_s: 0,
        })
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
        datagrams_in_flight_max: options.window,
    };
    Client::with_options(server, given).map_err(BenchError::Io)
}

/// Sends the requests and checks all answers.
fn call(client: &mut Client, requests: &Requests, outcome: &mut Outcome) -> Result<(), BenchError> {
    let borrowed: Vec<Request<'_>> = requests.each().collect();
    let mut wrong = None;
    let (begun, mut answered) = (Instant::now(), 0);
    let each = |number: usize, answer: Result<Response<'_>, ClientError>| {
        match answer {
            Ok(response) if requests.is_right(number, &response) => {
                let is_absent = response.status == Status::Absent;
                outcome.absent += u64::from(is_absent);
            }
            Ok(response) => wrong = Some(format!("{:?}: {response:?}", requests.operations[number])),
            Err(error) => wrong = Some(error.to_string()),
        }
        answered += 1;
        if answered % TIMED == 0 || borrowed.len() < TIMED {
            outcome.latencies.record(begun.elapsed());
        }
    };
    client.execute(&borrowed, each).map_err(BenchError::Io)?;
    outcome.requests += borrowed.len() as u64;
    wrong.map_or(Ok(()), |wrong| Err(BenchError::WrongAnswer(wrong)))
}

/// Stores the thread's share of the items.
pub(super) fn load(options: &UdpOptions, server: SocketAddr, thread: u64) -> Result<Outcome, BenchError> {
    let mut client = connect(options, server)?;
    let mut outcome = Outcome::default();
    let mut requests = Requests::new(options);
    let mut item = thread;
    while item < options.items {
        requests.clear();
        while requests.keys.len() < options.batch * options.window && item < options.items {
            requests.push(Operation::Set, item);
            item += options.threads;
        }
        call(&mut client, &requests, &mut outcome)?;
    }
    Ok(outcome)
}

/// Sends gets and sets of random items for a time.
pub(super) fn drive(options: &UdpOptions, server: SocketAddr, thread: u64) -> Result<Outcome, BenchError> {
    let mut client = connect(options, server)?;
    let mut outcome = Outcome::default();
    let mut requests = Requests::new(options);
    let mut random = Random::new(options.seed, thread);
    let gets_of_2_32 = (options.get_share * (1_u64 << 32) as f64) as u64;
    let end = Instant::now() + Duration::from_secs_f64(options.seconds);
    while Instant::now() < end {
        requests.clear();
        for _ in 0..options.batch * options.window {
            let is_get = random.below(1 << 32) < gets_of_2_32;
            let operation = if is_get { Operation::Get } else { Operation::Set };
            requests.push(operation, random.below(options.items));
        }
        call(&mut client, &requests, &mut outcome)?;
    }
    let statistics = client.statistics();
    (outcome.datagrams, outcome.resent) = (statistics.sent, statistics.resent);
    Ok(outcome)
}
