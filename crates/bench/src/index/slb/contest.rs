//! The same lookups without and with a buffer, alternating in one process. Rates are per CPU time, since other programs
//! may run.

use std::hint::black_box;
use std::time::Instant;

use alluvium_index::slb::{Config, Lookup, OwnedBuffer, Reader, SharedBuffer, Stats};
use alluvium_model::RequestStream;

use super::chained::Chained;
use super::subject::{Item, Subject, key_of};
use crate::process::thread_cpu_time;

/// Skew of requests, as in the thesis.
pub const SKEW: f64 = 0.99;

/// Number of stretches of requests, each of which one round looks up with and without a buffer; also the minimum number
/// of rounds.
const ROUNDS: usize = 7;

/// Maximum number of rounds, over the same stretches again, and seconds after which no more start except the second of
/// a pair: if a round takes milliseconds, a few of them cannot show a difference of some percent.
const SHORT_ROUNDS_MAX: usize = 16 * ROUNDS;
const ROUNDS_S: f64 = 3.0;

/// Number of rounds if only a gain is measured.
const GAIN_ROUNDS: usize = 2 * ROUNDS;

/// Maximum lookups until a buffer has decided.
const WARMING_LOOKUPS_MAX: usize = 1 << 25;

/// Requests drawn before the clock starts.
#[derive(Debug)]
pub struct Requests {
    keys: Vec<u64>,
    round_len: usize,
}

impl Requests {
    /// Enough for all rounds, over items whose hottest ones are at random positions.
    pub fn draw(items: u32, round_len: usize, seed: u64) -> Self {
        let mut stream =
            RequestStream::new(u64::from(items), SKEW, seed).expect("a skew and a number of items in bounds");
        let keys = (0..(ROUNDS + 1) * round_len).map(|_| key_of(stream.next_key())).collect();
        Self { keys, round_len }
    }

    /// The requests of a round; those of round 0 are made before the clock starts.
    fn round(&self, number: usize) -> &[u64] {
        &self.keys[number * self.round_len..(number + 1) * self.round_len]
    }
}

/// Number of keys of a call for many.
const BATCH: usize = 64;

/// Median rates, and medians of the ratios to direct lookups, each taken over two rounds.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Direct lookups, one call per key, then in a loop.
    pub direct_per_s: [f64; 2],
    /// Through a buffer of each form, with one key per call and with many.
    pub through: Vec<Through>,
}

/// One way to use a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Through {
    /// The form of the buffer and of the calls.
    pub name: &'static str,
    /// Median of the rates.
    pub per_s: f64,
    /// Median of the ratios.
    pub ratio: f64,
    /// The counters at the end.
    pub stats: Stats,
}

/// Whether lookups bypass the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Direct,
    Through,
}

/// A buffer and the index behind it, looked up as by their owner.
trait Front<S: Subject> {
    fn index(&self) -> &S;

    /// Looks up `keys`, one per call, in the index itself or through the buffer.
    fn look_up_singly(&mut self, way: Way, keys: &[u64]);

    /// Looks up `keys` through the buffer, many per call.
    fn look_up_each(&mut self, keys: &[u64]);

    fn stats(&self) -> Stats;
}

/// Owns its index, as it would elsewhere, so that it reaches the index in as many steps as direct lookups.
impl<S: Subject> Front<S> for OwnedBuffer<S> {
    fn index(&self) -> &S {
        self.index()
    }

    fn look_up_singly(&mut self, way: Way, keys: &[u64]) {
        let get: Owned<S> = match way {
            Way::Direct => |buffer, key| buffer.index().search(key).map(|(_, item)| item),
            Way::Through => OwnedBuffer::get,
        };
        singly_by_owner(self, black_box(get), keys);
    }

    fn look_up_each(&mut self, keys: &[u64]) {
        for keys in keys.chunks(BATCH) {
            self.get_each(keys, |key, item| check::<S>(*key, item));
        }
    }

    fn stats(&self) -> Stats {
        self.stats()
    }
}

impl<S: Subject> Front<S> for (&SharedBuffer<S>, Reader) {
    fn index(&self) -> &S {
        self.0.index()
    }

    fn look_up_singly(&mut self, way: Way, keys: &[u64]) {
        let (buffer, reader) = self;
        let get: Shared<S> = match way {
            Way::Direct => |buffer, _, key| buffer.index().search(key).map(|(_, item)| item),
            Way::Through => SharedBuffer::get,
        };
        singly_by_reader(buffer, reader, black_box(get), keys);
    }

    fn look_up_each(&mut self, keys: &[u64]) {
        let (buffer, reader) = self;
        for keys in keys.chunks(BATCH) {
            buffer.get_each(reader, keys, |key, item| check::<S>(*key, item));
        }
    }

    fn stats(&self) -> Stats {
        self.1.stats()
    }
}

fn look_up<S: Subject>(front: &mut impl Front<S>, way: Way, is_many: bool, keys: &[u64]) {
    match (way, is_many) {
        (_, false) => front.look_up_singly(way, keys),
        (Way::Through, true) => front.look_up_each(keys),
        (Way::Direct, true) => {
            let index = front.index();
            keys.iter().for_each(|key| check::<S>(*key, index.search(key).map(|(_, item)| item)));
        }
    }
}

/// Makes lookups until the buffer has decided, or up to the maximum.
fn warm_up<S: Subject>(front: &mut impl Front<S>, is_many: bool, requests: &Requests) {
    for keys in requests.keys.chunks(BATCH).cycle().take(WARMING_LOOKUPS_MAX / BATCH) {
        if front.stats().trials > 0 {
            break;
        }
        look_up(front, Way::Through, is_many, keys);
    }
}

/// Rates of rounds without the buffer and with it; the order alternates.
fn pairs<S: Subject>(front: &mut impl Front<S>, is_many: bool, requests: &Requests) -> [Vec<f64>; 2] {
    let mut rates: [Vec<f64>; 2] = Default::default();
    let began = Instant::now();
    for number in 0..SHORT_ROUNDS_MAX {
        if number >= ROUNDS && number.is_multiple_of(2) && began.elapsed().as_secs_f64() > ROUNDS_S {
            break;
        }
        let keys = requests.round(1 + number % ROUNDS);
        for side in [number % 2, 1 - number % 2] {
            let started = thread_cpu_time();
            look_up(front, [Way::Direct, Way::Through][side], is_many, keys);
            rates[side].push(keys.len() as f64 / (thread_cpu_time() - started).as_secs_f64());
        }
    }
    rates
}

/// Runs all rounds, with one buffer after another, since the tables of several do not fit in the processor's caches
/// together.
///
/// # Panics
/// If a lookup returns another item than that of its key.
pub fn run<S: Subject>(index: S, requests: &Requests, config: Config) -> Outcome {
    let mut direct_rates: [Vec<f64>; 2] = Default::default();
    let mut owned = OwnedBuffer::new(index, config);
    let mut measured = vec![measure("owned", &mut owned, false, requests, &mut direct_rates)];
    let mut owned_each = OwnedBuffer::new(owned.into_index(), config);
    measured.push(measure("owned_each", &mut owned_each, true, requests, &mut direct_rates));
    let shared = SharedBuffer::new(owned_each.into_index(), config);
    for (name, is_many) in [("shared", false), ("shared_each", true)] {
        let mut reader = (&shared, shared.reader());
        measured.push(measure(name, &mut reader, is_many, requests, &mut direct_rates));
    }
    Outcome { direct_per_s: direct_rates.map(median), through: measured }
}

fn measure<S: Subject>(
    name: &'static str,
    front: &mut impl Front<S>,
    is_many: bool,
    requests: &Requests,
    direct_rates: &mut [Vec<f64>; 2],
) -> Through {
    warm_up(front, is_many, requests);
    let [direct, through] = pairs(front, is_many, requests);
    let ratios: Vec<f64> = through.iter().zip(&direct).map(|(with, without)| with / without).collect();
    direct_rates[usize::from(is_many)].extend(direct);
    Through { name, per_s: median(through), ratio: median(of_two_rounds(ratios)), stats: front.stats() }
}

/// Combines two rounds, one with each order, into one number, since whichever way comes second finds the memory of the
/// same keys in the processor's caches.
fn of_two_rounds(numbers: Vec<f64>) -> Vec<f64> {
    numbers.as_chunks::<2>().0.iter().map(|[one, other]| (one * other).sqrt()).collect()
}

// Single lookups are calls, since a loop of nothing else would keep the fields of the index in registers. Both ways
// call functions that the compiler does not know, from the same instructions: how it calls a function that it knows,
// and what it keeps in registers there, differ by more than the effect to be measured.

type Owned<S> = for<'a> fn(&'a mut OwnedBuffer<S>, &u64) -> Option<<S as Lookup>::Item<'a>>;
type Shared<S> = for<'a> fn(&'a SharedBuffer<S>, &mut Reader, &u64) -> Option<<S as Lookup>::Item<'a>>;

#[inline(never)]
fn singly_by_owner<S: Subject>(buffer: &mut OwnedBuffer<S>, get: Owned<S>, keys: &[u64]) {
    keys.iter().for_each(|key| check::<S>(*key, get(buffer, key)));
}

#[inline(never)]
fn singly_by_reader<S: Subject>(buffer: &SharedBuffer<S>, reader: &mut Reader, get: Shared<S>, keys: &[u64]) {
    keys.iter().for_each(|key| check::<S>(*key, get(buffer, reader, key)));
}

#[inline(always)]
fn check<S: Subject>(key: u64, item: Option<S::Item<'_>>) {
    assert!(item.is_some_and(|item| S::is_right(key, item)), "another item than that of key {key}");
}

/// The median.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Lookups per second without and with an owned buffer of each kind: medians of a few alternating rounds.
pub fn gains<S: Subject>(mut index: S, requests: &Requests, configs: &[Config]) -> Vec<[f64; 2]> {
    let mut gains = Vec::new();
    for config in configs {
        let mut buffer = OwnedBuffer::new(index, *config);
        gains.push(gain(&mut buffer, requests));
        index = buffer.into_index();
    }
    gains
}

fn gain<S: Subject>(buffer: &mut OwnedBuffer<S>, requests: &Requests) -> [f64; 2] {
    warm_up(buffer, false, requests);
    let mut rates: [Vec<f64>; 2] = Default::default();
    for round in 0..GAIN_ROUNDS {
        let keys = requests.round(1 + round % ROUNDS);
        for way in [round % 2, 1 - round % 2] {
            let started = thread_cpu_time();
            buffer.look_up_singly([Way::Direct, Way::Through][way], keys);
            rates[way].push(keys.len() as f64 / (thread_cpu_time() - started).as_secs_f64());
        }
    }
    rates.map(|rates| median(of_two_rounds(rates)))
}

/// A chained hash table without a buffer, and one with.
struct Mixed {
    table: Chained<1>,
    buffer: OwnedBuffer<Chained<1>>,
}

/// How an item is replaced by one at another position, and how one is looked up.
type Change = fn(&mut Mixed, u64);
type Get = for<'a> fn(&'a mut Mixed, &u64) -> Option<&'a Item>;

/// Operations per second on a chained hash table without and with an owned buffer; one operation in `sets_every`
/// replaces an item by one at another position.
pub fn mixed_gain(items: u32, requests: &Requests, config: Config, sets_every: usize) -> [f64; 2] {
    let buffer = OwnedBuffer::new(Chained::build(items), config);
    let mut mixed = Mixed { table: Chained::build(items), buffer };
    let direct: (Change, Get) = black_box((
        |mixed, key| _ = mixed.table.replace(key),
        |mixed, key| mixed.table.search(key).map(|(_, item)| item),
    ));
    let through: (Change, Get) = black_box((
        |mixed, key| mixed.buffer.change(&key, |table| (Some(table.replace(key)), ())),
        |mixed, key| mixed.buffer.get(key),
    ));
    // Both ways, so that neither table is loaded from memory for the first time later.
    let mut lookups = 0;
    for keys in requests.keys.chunks(sets_every.min(BATCH)).cycle() {
        mix(&mut mixed, through, keys, sets_every);
        mix(&mut mixed, direct, keys, sets_every);
        lookups += keys.len();
        if mixed.buffer.stats().trials > 0 || lookups >= WARMING_LOOKUPS_MAX {
            break;
        }
    }
    let mut rates: [Vec<f64>; 2] = Default::default();
    for round in 0..GAIN_ROUNDS {
        let keys = requests.round(1 + round % ROUNDS);
        for way in [round % 2, 1 - round % 2] {
            let started = thread_cpu_time();
            mix(&mut mixed, [direct, through][way], keys, sets_every);
            rates[way].push(keys.len() as f64 / (thread_cpu_time() - started).as_secs_f64());
        }
    }
    rates.map(|rates| median(of_two_rounds(rates)))
}

#[inline(never)]
fn mix(mixed: &mut Mixed, (change, get): (Change, Get), keys: &[u64], sets_every: usize) {
    for keys in keys.chunks(sets_every) {
        let sets = usize::from(keys.len() == sets_every);
        let (gets, sets) = keys.split_at(keys.len() - sets);
        for key in gets {
            check::<Chained<1>>(*key, get(mixed, key));
        }
        for key in sets {
            change(mixed, *key);
        }
    }
}
