//! What clients see of each key in a network that loses, doubles and reorders is what they can see of a register.
//!
//! A write may be executed again as long as copies of its datagram are in the network, which nothing prevents
//! (decision 0071). How often each write was executed, and until when, is therefore taken from the workers, not its
//! time or its order.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use alluvium_client::{Client, ClientError, ClientOptions, Operation, Request, Response, Status};
use alluvium_io::SimulatedClock;
use alluvium_io::datagrams::{NetworkFaults, SimulatedDatagrams, SimulatedNetwork};
use alluvium_protocol::datagram::Mode;

use super::Way;
use super::counters::Figure;
use super::linearizability::{Action, OBSERVED_MAX, Observed, Value, is_linearizable};
use super::simulated_workers::{FAULTS, Random, STEP, WAYS, Workers, server};

const KEYS: u64 = 8;
const CALLERS: u64 = 3;
const WORKERS: u16 = 3;
/// Number of steps in which calls begin.
const STEPS: u64 = 1_500;
/// What a key has without a value.
const REMOVED: Value = 0;

/// What one client has asked for in a call.
struct Caller {
    client: Client<SimulatedDatagrams>,
    /// The key, and the value to write, [`REMOVED`] to remove it.
    requests: Vec<(u64, Option<Value>)>,
    begun: u64,
    has_ended: bool,
}

/// What all have seen and done, by key.
#[derive(Default)]
struct Story {
    moment: u64,
    observed: HashMap<u64, Vec<Observed>>,
    /// How often each value was stored, and when last.
    stored: HashMap<Value, (u32, u64)>,
    /// How often the value of each key was removed, and when last.
    removed: HashMap<u64, (u32, u64)>,
    /// When the first call began that removes each key.
    removals_begun: HashMap<u64, u64>,
    values: Value,
    answered: u64,
}

impl Story {
    fn now(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }

    /// Removals of a key of which no client knows: a copy of the datagram had removed it before.
    fn copies_of_removals(&self, key: u64) -> impl Iterator<Item = Observed> {
        let (times, ended) = self.removed.get(&key).copied().unwrap_or_default();
        let is_removal = |observed: &&Observed| observed.action == Action::Write(REMOVED);
        let known = self.observed[&key].iter().filter(is_removal).count();
        let begun = self.removals_begun.get(&key).copied().unwrap_or_default();
        let copy = Observed { action: Action::Write(REMOVED), begun, ended, is_certain: false };
        std::iter::repeat_n(copy, (times as usize).saturating_sub(known))
    }

    /// The keys whose histories no register has.
    fn wrong_keys(&self) -> Vec<u64> {
        let is_wrong = |key: &u64| {
            let mut history = self.observed[key].clone();
            history.extend(self.copies_of_removals(*key));
            for observed in self.observed[key].iter() {
                let Action::Write(value) = observed.action else { continue };
                if value == REMOVED {
                    continue;
                }
                let (times, ended) = self.stored.get(&value).copied().unwrap_or_default();
                let copy = Observed { ended, is_certain: false, ..*observed };
                history.extend(std::iter::repeat_n(copy, times.saturating_sub(1) as usize));
            }
            !is_linearizable(&history)
        };
        let mut wrong: Vec<u64> = self.observed.keys().copied().filter(is_wrong).collect();
        wrong.sort_unstable();
        wrong
    }
}

impl Caller {
    fn new(network: &SimulatedNetwork, clock: &SimulatedClock, number: u64) -> Self {
        let address = SocketAddr::from(([10, 0, 1, number as u8], 7));
        let options = ClientOptions {
            deadline: Duration::from_secs(60),
            requests_per_datagram_max: 4,
            ..ClientOptions::default()
        };
        let client = Client::on(network.bind(address), server(), Arc::new(clock.clone()), options);
        Self { client, requests: Vec::new(), begun: 0, has_ended: true }
    }

    fn begin(&mut self, random: &mut Random, story: &mut Story) {
        self.requests.clear();
        for _ in 0..1 + random.below(6) {
            let key = random.below(KEYS);
            // As many as can be checked, together with copies.
            if story.observed.get(&key).is_some_and(|observed| observed.len() >= OBSERVED_MAX / 2) {
                continue;
            }
            let written = match random.below(8) {
                0 => Some(REMOVED),
                1 | 2 => {
                    story.values += 1;
                    Some(story.values)
                }
                _ => None,
            };
            self.requests.push((key, written));
        }
        self.begun = story.now();
        for (key, _) in self.requests.iter().filter(|(_, written)| *written == Some(REMOVED)) {
            story.removals_begun.entry(*key).or_insert(self.begun);
        }
        self.has_ended = self.requests.is_empty();
        self.client.begin(self.requests.len());
    }

    fn advance(&mut self, story: &mut Story) {
        let keys: Vec<[u8; 8]> = self.requests.iter().map(|(key, _)| key.to_le_bytes()).collect();
        let values: Vec<[u8; 4]> =
            self.requests.iter().map(|(_, value)| value.unwrap_or(0).to_le_bytes()).collect();
        let given = self.requests.iter().zip(keys.iter().zip(&values));
        let given: Vec<Request<'_>> = given
            .map(|((_, written), (key, bytes))| {
                let (operation, value): (_, &[u8]) = match *written {
                    None => (Operation::Get, &[]),
                    Some(REMOVED) => (Operation::Delete, &[]),
                    Some(_) => (Operation::Set, bytes),
                };
                Request { operation, key, value, opaque: 0, expiry_s: 0 }
            })
            .collect();
        let (requests, begun) = (&self.requests, self.begun);
        let mut each = |number: usize, answer: Result<Response<'_>, ClientError>| {
            let response = answer.unwrap();
            let (key, written) = requests[number];
            let action = match (written, response.status) {
                (Some(value), Status::Done) => Action::Write(value),
                (None | Some(REMOVED), Status::Absent) => Action::Read(REMOVED),
                (None, Status::Done) => Action::Read(u32::from_le_bytes(response.value.try_into().unwrap())),
                other => panic!("{other:?}"),
            };
            let ended = story.now();
            story.answered += 1;
            story.observed.entry(key).or_default().push(Observed { action, begun, ended, is_certain: true });
        };
        self.has_ended = self.client.advance(&given, &mut each).unwrap();
    }
}

/// What a run is about.
#[derive(Clone, Copy)]
struct Run {
    way: Way,
    faults: NetworkFaults,
    moves: bool,
    answers_first: bool,
}

impl Run {
    fn new(way: Way) -> Self {
        Self { way, faults: FAULTS, moves: false, answers_first: false }
    }

    fn tell(self, seed: u64) -> (Story, Workers) {
        let Self { way, faults, moves, answers_first } = self;
        let (network, clock) = (SimulatedNetwork::new(seed, faults), SimulatedClock::default());
        let (mut random, mut story) = (Random(seed), Story::default());
        let mut workers = Workers::new(&network, &clock, WORKERS, way);
        workers.services.iter_mut().for_each(|service| service.answers_first = answers_first);
        let mut callers: Vec<Caller> =
            (0..CALLERS).map(|number| Caller::new(&network, &clock, number)).collect();
        // Until when a worker has no processor.
        let mut waits_until = [0; WORKERS as usize];
        let mut step = 0;
        while step < STEPS || callers.iter().any(|caller| !caller.has_ended) {
            step += 1;
            assert!(step < 100 * STEPS, "seed {seed}: all calls end");
            if moves && step.is_multiple_of(60) {
                workers.move_partitions();
            }
            for caller in &mut callers {
                if caller.has_ended && step < STEPS {
                    caller.begin(&mut random, &mut story);
                }
                if !caller.has_ended {
                    caller.advance(&mut story);
                }
            }
            let mut stored = |key: &[u8], value: Option<Vec<u8>>| {
                story.moment += 1;
                let (times, last) = match value {
                    Some(value) => {
                        story.stored.entry(u32::from_le_bytes(value.try_into().unwrap())).or_default()
                    }
                    None => story.removed.entry(u64::from_le_bytes(key.try_into().unwrap())).or_default(),
                };
                (*times, *last) = (*times + 1, story.moment);
            };
            for until in &mut waits_until {
                if *until < step && random.below(30) == 0 {
                    *until = step + random.below(60);
                }
            }
            workers.serve(|number| waits_until[number] < step, &mut stored);
            network.step();
            clock.advance(STEP);
        }
        (story, workers)
    }
}

fn count(workers: &Workers, figure: Figure) -> u64 {
    workers.counters.iter().map(|counters| counters.get(figure)).sum()
}

#[test]
fn each_key_is_a_register_in_every_mode() {
    for way in WAYS {
        let (mut handed_over, mut copies, mut answered, mut removed) = (0, 0, 0, 0);
        for seed in 0..8 {
            let (story, workers) = Run::new(way).tell(seed);
            assert_eq!(story.wrong_keys(), [0_u64; 0], "{way:?}, seed {seed}");
            answered += story.answered;
            copies += story.stored.values().filter(|(times, _)| *times > 1).count();
            removed += story.removed.values().map(|(times, _)| times).sum::<u32>();
            handed_over += count(&workers, Figure::HandedOver);
            assert_eq!(count(&workers, Figure::Misdirected), 0, "{way:?}: clients know the owners");
        }
        assert!(answered > 1_000 && copies > 0, "{way:?}: {answered} answers, {copies} copies");
        assert!(removed > 50, "{way:?}: {removed} removals");
        assert_eq!(handed_over > 0, way.hands_over && way.mode != Mode::Shared, "{way:?}");
    }
}

#[test]
fn each_key_is_a_register_while_partitions_move() {
    for way in WAYS {
        let (mut moved, mut answered) = (0, 0);
        for seed in 20..26 {
            let (story, workers) = Run { moves: true, ..Run::new(way) }.tell(seed);
            assert_eq!(story.wrong_keys(), [0_u64; 0], "{way:?}, seed {seed}");
            answered += story.answered;
            moved += count(&workers, Figure::Moved);
        }
        assert!(answered > 100 && moved > 0, "{way:?}: {answered} answers, {moved} datagrams moved");
    }
}

/// The mistake: a worker that hands a write over says at once that it is done.
#[test]
fn an_answer_before_the_execution_is_found() {
    let mut found = 0;
    let faults = NetworkFaults { delay_steps_max: 2, ..NetworkFaults::default() };
    for seed in 0..20 {
        let way = Way { mode: Mode::Exclusive, hands_over: true };
        let (story, _) = Run { answers_first: true, faults, ..Run::new(way) }.tell(seed);
        found += usize::from(!story.wrong_keys().is_empty());
    }
    assert!(found > 0, "no history was wrong");
}
