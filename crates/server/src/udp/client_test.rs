//! Clients and workers in a network that loses, doubles and reorders, against what the workers have executed.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use alluvium_client::{Client, ClientError, ClientOptions, Operation, Request, Response, Status};
use alluvium_io::SimulatedClock;
use alluvium_io::datagrams::{NetworkFaults, SimulatedDatagrams, SimulatedNetwork};

use super::Way;
use super::simulated_workers::{FAULTS, Random, STEP, Value, WAYS, Workers, server};
use crate::store::{DatabaseNumber, Databases as _};

const KEYS: u64 = 12;
/// What the workers have stored under each key, and when.
#[derive(Default)]
struct History(HashMap<Vec<u8>, Vec<(u64, Value)>>);

impl History {
    /// Whether the key had this value at some moment from `start` to `end`.
    fn had(&self, key: &[u8], value: &Value, start: u64, end: u64) -> bool {
        let empty = Vec::new();
        let states = self.0.get(key).unwrap_or(&empty);
        let before = states.iter().rfind(|(step, _)| *step < start).map_or(&None, |(_, value)| value);
        before == value || states.iter().any(|(step, state)| (start..=end).contains(step) && state == value)
    }

    /// Whether it was stored in this time.
    fn was_stored(&self, key: &[u8], value: &Value, start: u64, end: u64) -> bool {
        self.0.get(key).is_some_and(|states| {
            states.iter().any(|(step, state)| (start..=end).contains(step) && state == value)
        })
    }
}

/// Lets all workers serve what has come.
fn serve(servers: &mut Workers, history: &mut History, step: u64) {
    servers.serve(|_| true, &mut |key, value| {
        history.0.entry(key.to_vec()).or_default().push((step, value));
    });
}

/// A client with the requests of its call.
struct Caller {
    client: Client<SimulatedDatagrams>,
    requests: Vec<(Operation, Vec<u8>, Vec<u8>)>,
    begun_at: u64,
    number: u64,
    calls: u64,
}

type Answer = (usize, Result<(Status, Vec<u8>), ()>);

impl Caller {
    fn new(network: &SimulatedNetwork, clock: &SimulatedClock, number: u64, options: ClientOptions) -> Self {
        let address = SocketAddr::from(([10, 0, 1, number as u8], 7));
        let client = Client::on(network.bind(address), server(), Arc::new(clock.clone()), options);
        Self { client, requests: Vec::new(), begun_at: 0, number, calls: 0 }
    }

    fn begin(&mut self, random: &mut Random, step: u64) {
        self.calls += 1;
        let len = 1 + random.below(60);
        self.requests = (0..len)
            .map(|position| {
                let key = random.below(KEYS).to_le_bytes().to_vec();
                let mut value = format!("{}-{}-{position}", self.number, self.calls).into_bytes();
                value.resize(value.len() + random.below(3) as usize * 100, b'.');
                match random.below(10) {
                    0..3 => (Operation::Set, key, value),
                    3 => (Operation::Delete, key, Vec::new()),
                    _ => (Operation::Get, key, Vec::new()),
                }
            })
            .collect();
        self.begun_at = step;
        self.client.begin(self.requests.len());
    }

    /// Returns whether the call has ended, and the answers that have come.
    fn advance(&mut self) -> (bool, Vec<Answer>) {
        let requests: Vec<Request<'_>> = self
            .requests
            .iter()
            .map(|(operation, key, value)| Request {
                operation: *operation,
                key,
                value,
                opaque: 0,
                expiry_s: 0,
            })
            .collect();
        let mut answers = Vec::new();
        let mut each = |number: usize, answer: Result<Response<'_>, ClientError>| {
            let answer = answer.map(|response| (response.status, response.value.to_vec()));
            answers.push((number, answer.map_err(|error| assert!(matches!(error, ClientError::Unanswered)))));
        };
        let has_ended = self.client.advance(&requests, &mut each).unwrap();
        (has_ended, answers)
    }
}

/// Checks each answer against the history, and returns how many there were and how many requests got none.
fn run(seed: u64, workers: u16, way: Way, faults: NetworkFaults, moves: bool) -> (u64, u64) {
    let (network, clock) = (SimulatedNetwork::new(seed, faults), SimulatedClock::default());
    let mut random = Random(seed);
    let mut servers = Workers::new(&network, &clock, workers, way);
    let mut history = History::default();
    let options = ClientOptions { deadline: Duration::from_secs(20), ..ClientOptions::default() };
    let mut callers: Vec<Caller> =
        (0..3).map(|number| Caller::new(&network, &clock, number, options)).collect();
    callers.iter_mut().for_each(|caller| caller.begin(&mut random, 0));
    let (mut answered, mut unanswered) = (0, 0);
    for step in 1..3_000_u64 {
        if moves && step.is_multiple_of(400) {
            servers.move_partitions();
        }
        for caller in &mut callers {
            let (has_ended, answers) = caller.advance();
            for (number, answer) in answers {
                let (operation, key, value) = &caller.requests[number];
                let Ok((status, found)) = answer else {
                    unanswered += 1;
                    continue;
                };
                answered += 1;
                let start = caller.begun_at;
                let is_right = match (operation, status) {
                    (Operation::Get, Status::Done) => history.had(key, &Some(found), start, step),
                    (Operation::Get | Operation::Delete, Status::Absent) => {
                        history.had(key, &None, start, step)
                    }
                    (Operation::Set, Status::Done) => {
                        history.was_stored(key, &Some(value.clone()), start, step)
                    }
                    (Operation::Delete, Status::Done) => history.was_stored(key, &None, start, step),
                    _ => false,
                };
                assert!(is_right, "seed {seed}, step {step}: {operation:?} {key:?} {status:?}");
            }
            if has_ended {
                caller.begin(&mut random, step);
            }
        }
        serve(&mut servers, &mut history, step);
        network.step();
        clock.advance(STEP);
    }
    let calls: u64 = callers.iter().map(|caller| caller.calls).sum();
    assert!(calls > 30, "{calls} calls");
    check_late_copies(&history, &callers);
    (answered, unanswered)
}

/// A value is stored again only as long as copies of its request are in the network: nothing keeps requests.
fn check_late_copies(history: &History, callers: &[Caller]) {
    let sent: u64 = callers.iter().map(|caller| caller.client.statistics().sent).sum();
    assert!(sent > 0);
    for states in history.0.values() {
        let mut times: HashMap<&Vec<u8>, (u64, u64)> = HashMap::new();
        for (step, value) in states.iter().filter_map(|(step, value)| Some((step, value.as_ref()?))) {
            let (first, last) = times.entry(value).or_insert((*step, *step));
            (*first, *last) = ((*first).min(*step), (*last).max(*step));
        }
        for (first, last) in times.into_values() {
            // A client sends copies until it has a reply, and each takes up to the maximum delay.
            assert!(last - first < 1_500, "stored {} steps later again", last - first);
        }
    }
}

#[test]
fn answers_are_those_of_a_map() {
    for seed in 0..12 {
        let (answered, unanswered) =
            run(seed, 1 + seed as u16 % 3, WAYS[seed as usize % WAYS.len()], FAULTS, false);
        assert!(answered > 1_000 && unanswered == 0, "seed {seed}: {answered} answered, {unanswered} not");
    }
}

#[test]
fn a_directory_that_changes_under_way_loses_nothing() {
    for seed in 10..16 {
        let (answered, unanswered) = run(seed, 3, WAYS[seed as usize % WAYS.len()], FAULTS, true);
        assert!(answered > 1_000 && unanswered == 0, "seed {seed}: {answered} answered, {unanswered} not");
    }
}

#[test]
fn without_faults_nothing_is_sent_again() {
    let (network, clock) = (SimulatedNetwork::new(1, NetworkFaults::default()), SimulatedClock::default());
    let mut servers = Workers::new(&network, &clock, 2, WAYS[0]);
    let mut caller = Caller::new(&network, &clock, 1, ClientOptions::default());
    let mut random = Random(3);
    for step in 0..200 {
        caller.begin(&mut random, step);
        while !caller.advance().0 {
            serve(&mut servers, &mut History::default(), step);
            network.step();
        }
    }
    let statistics = caller.client.statistics();
    assert_eq!((statistics.resent, statistics.unexpected, statistics.directories), (0, 0, 1));
}

#[test]
fn a_deadline_ends_a_call() {
    let faults = NetworkFaults { loss_of_256: 256, ..NetworkFaults::default() };
    let (network, clock) = (SimulatedNetwork::new(1, faults), SimulatedClock::default());
    let mut servers = Workers::new(&network, &clock, 1, WAYS[0]);
    let mut caller = Caller::new(&network, &clock, 1, ClientOptions::default());
    caller.begin(&mut Random(1), 0);
    let mut steps = 0;
    let answers = loop {
        let (has_ended, answers) = caller.advance();
        if has_ended {
            break answers;
        }
        serve(&mut servers, &mut History::default(), steps);
        network.step();
        clock.advance(STEP);
        steps += 1;
    };
    assert_eq!(steps, 1_000);
    assert_eq!(answers.len(), caller.requests.len());
    assert!(answers.iter().all(|(_, answer)| answer.is_err()));
    // The client works again when the network does.
    network.set_faults(NetworkFaults::default());
    caller.begin(&mut Random(1), steps);
    while !caller.advance().0 {
        serve(&mut servers, &mut History::default(), steps);
        network.step();
        clock.advance(STEP);
    }
    assert_eq!(caller.client.statistics().unanswered, answers.len() as u64);
}

/// Values that have no room together come in several datagrams.
#[test]
fn all_values_come_whatever_their_lengths() {
    let (network, clock) = (SimulatedNetwork::new(1, NetworkFaults::default()), SimulatedClock::default());
    let mut servers = Workers::new(&network, &clock, 1, WAYS[0]);
    let mut caller = Caller::new(&network, &clock, 1, ClientOptions::default());
    for number in 0..40_u8 {
        let value = vec![number; usize::from(number) * 35];
        servers.store.database(DatabaseNumber::FIRST).insert(&[number], &value, None).unwrap();
    }
    caller.requests = (0..40).rev().map(|number| (Operation::Get, vec![number], Vec::new())).collect();
    caller.client.begin(40);
    let mut all = HashMap::new();
    loop {
        let (has_ended, answers) = caller.advance();
        all.extend(answers.into_iter().map(|(number, answer)| (39 - number as u8, answer.unwrap())));
        if has_ended {
            break;
        }
        serve(&mut servers, &mut History::default(), 0);
        network.step();
        clock.advance(STEP);
    }
    assert_eq!(all.len(), 40);
    for (number, (status, value)) in all {
        assert_eq!((status, value), (Status::Done, vec![number; usize::from(number) * 35]));
    }
}
