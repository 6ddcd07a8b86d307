//! The same lookups without and with a buffer, by turns in one process. Rates are of CPU time, since others may run.

use std::time::Instant;

use alluvium_index::slb::{Config, Lookup, OwnedBuffer, Reader, SharedBuffer, Stats};
use alluvium_model::simulator::RequestStream;

use super::chained::Chained;
use super::subject::{Subject, key_of};
use crate::process::thread_cpu_time;

/// Skew of requests, that of the thesis.
pub const SKEW: f64 = 0.99;

/// Stretches of requests, of which each round asks for one with and without a buffer; rounds at least.
const ROUNDS: usize = 7;

/// Rounds at most, over the same stretches again, and seconds after which no more begin but the second of two: where a
/// round takes milliseconds, a few of them tell no difference of some percent.
const SHORT_ROUNDS_MAX: usize = 16 * ROUNDS;
const ROUNDS_S: f64 = 3.0;

/// Rounds at most until a buffer has decided.
const WARMING_ROUNDS_MAX: usize = 40;

/// Rounds where only a gain is asked for. Before them the buffer has decided, which takes so many lookups at most.
const GAIN_ROUNDS: usize = 5;
const WARMING_LOOKUPS_MAX: usize = 1 << 25;

/// Requests drawn before the clock starts.
#[derive(Debug)]
pub struct Requests {
    keys: Vec<u64>,
    round_len: usize,
}

impl Requests {
    /// Enough for all rounds over items of which the hottest ones lie anywhere.
    pub fn draw(items: u32, round_len: usize, seed: u64) -> Self {
        let mut stream =
            RequestStream::new(u64::from(items), SKEW, seed).expect("a skew and a number of items in bounds");
        let keys = (0..(ROUNDS + 1) * round_len).map(|_| key_of(stream.next_key())).collect();
        Self { keys, round_len }
    }

    /// The requests of a round; those of round 0 come before the clock starts.
    fn round(&self, number: usize) -> &[u64] {
        &self.keys[number * self.round_len..(number + 1) * self.round_len]
    }
}

/// Keys of a call for many.
const BATCH: usize = 64;

/// Median rates, and medians of the ratios of two rounds each to their direct lookups.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Direct lookups, one call a key, then in a loop.
    pub direct_per_s: [f64; 2],
    /// Through a buffer of each form, one key a call and many.
    pub through: Vec<Through>,
}

/// One way through a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Through {
    pub name: &'static str,
    pub per_s: f64,
    pub ratio: f64,
    pub stats: Stats,
}

/// A buffer and the index behind it, as whoever has both looks up.
trait Front<S: Subject> {
    fn index(&self) -> &S;

    /// Looks `keys` up, one a call or many.
    fn look_up(&mut self, keys: &[u64], is_many: bool);

    fn stats(&self) -> Stats;
}

/// Owns its index, as it would elsewhere, so that it reaches it in as many steps as direct lookups.
impl<S: Subject> Front<S> for OwnedBuffer<S> {
    fn index(&self) -> &S {
        self.index()
    }

    fn look_up(&mut self, keys: &[u64], is_many: bool) {
        if !is_many {
            return keys.iter().for_each(|key| check::<S>(*key, by_owner(self, key)));
        }
        for keys in keys.chunks(BATCH) {
            self.get_each(keys, |key, item| check::<S>(*key, item));
        }
    }

    fn stats(&self) -> Stats {
        self.stats()
    }
}

impl<S: Subject> Front<S> for (&SharedBuffer<S>, Reader<'_, S>) {
    fn index(&self) -> &S {
        self.0.index()
    }

    fn look_up(&mut self, keys: &[u64], is_many: bool) {
        let (_, reader) = self;
        if !is_many {
            return keys.iter().for_each(|key| check::<S>(*key, by_reader(reader, key)));
        }
        for keys in keys.chunks(BATCH) {
            reader.get_each(keys, |key, item| check::<S>(*key, item));
        }
    }

    fn stats(&self) -> Stats {
        self.1.stats()
    }
}

fn look_up_directly<S: Subject>(index: &S, keys: &[u64], is_many: bool) {
    if is_many {
        keys.iter().for_each(|key| check::<S>(*key, index.search(key).map(|(_, item)| item)));
    } else {
        keys.iter().for_each(|key| check::<S>(*key, directly(index, key)));
    }
}

/// Until the buffer has decided, or for so many rounds.
fn warm_up<S: Subject>(front: &mut impl Front<S>, is_many: bool, requests: &Requests) {
    for round in (0..=ROUNDS).cycle().take(WARMING_ROUNDS_MAX) {
        if front.stats().trials > 0 {
            break;
        }
        front.look_up(requests.round(round), is_many);
    }
}

/// Rates of rounds without the buffer and with it, which goes first in every other one.
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
            match side {
                0 => look_up_directly(front.index(), keys, is_many),
                _ => front.look_up(keys, is_many),
            }
            rates[side].push(keys.len() as f64 / (thread_cpu_time() - started).as_secs_f64());
        }
    }
    rates
}

/// Runs all rounds, of one buffer after the other, for the tables of several don't fit in the processor's caches
/// together.
///
/// # Panics
/// When a lookup returns another item than that of its key.
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
    // Of two rounds with either going first, for whichever comes second finds the same keys' memory in the caches.
    let ratios = ratios.as_chunks::<2>().0.iter().map(|[one, other]| (one * other).sqrt()).collect();
    direct_rates[usize::from(is_many)].extend(direct);
    Through { name, per_s: median(through), ratio: median(ratios), stats: front.stats() }
}

// Lookups are calls, for a loop of nothing else would keep the fields of the index in registers.

#[inline(never)]
fn directly<'a, S: Subject>(index: &'a S, key: &u64) -> Option<S::Item<'a>> {
    index.search(key).map(|(_, item)| item)
}

#[inline(never)]
fn by_owner<'a, I: Lookup<Key = u64>>(buffer: &'a mut OwnedBuffer<I>, key: &u64) -> Option<I::Item<'a>> {
    buffer.get(key)
}

#[inline(never)]
fn by_reader<'a, S: Subject>(reader: &mut Reader<'a, S>, key: &u64) -> Option<S::Item<'a>> {
    reader.get(key)
}

#[inline(always)]
fn check<S: Subject>(key: u64, item: Option<S::Item<'_>>) {
    assert!(item.is_some_and(|item| S::is_right(key, item)), "another item than that of key {key}");
}

/// The middle one.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Lookups per second without and with an owned buffer: medians of a few rounds, by turns.
pub fn gain<S: Subject>(index: &S, requests: &Requests, config: Config) -> [f64; 2] {
    let mut buffer = OwnedBuffer::new(index, config);
    for key in requests.keys.iter().cycle().take(WARMING_LOOKUPS_MAX) {
        check::<S>(*key, by_owner(&mut buffer, key));
        if buffer.stats().trials > 0 {
            break;
        }
    }
    let mut rates: [Vec<f64>; 2] = Default::default();
    for round in 1..=GAIN_ROUNDS {
        let keys = requests.round(round);
        for way in [round % 2, 1 - round % 2] {
            let started = thread_cpu_time();
            match way {
                0 => keys.iter().for_each(|key| check::<S>(*key, directly(index, key))),
                _ => keys.iter().for_each(|key| check::<S>(*key, by_owner(&mut buffer, key))),
            }
            rates[way].push(keys.len() as f64 / (thread_cpu_time() - started).as_secs_f64());
        }
    }
    rates.map(median)
}

/// Operations per second on a chained hash table without and with an owned buffer, one in `sets_every` of which
/// replaces an item by one at another place.
pub fn mixed_gain(items: u32, requests: &Requests, config: Config, sets_every: usize) -> [f64; 2] {
    let mut table = Chained::<1>::build(items);
    let mut buffer = OwnedBuffer::new(Chained::<1>::build(items), config);
    let mut rates: [Vec<f64>; 2] = Default::default();
    let is_set = |number: usize| number.is_multiple_of(sets_every);
    let through = |buffer: &mut OwnedBuffer<Chained<1>>, number: usize, key: u64| {
        if is_set(number) {
            buffer.change(&key, |table| (Some(table.replace(key)), ()));
        } else {
            check::<Chained<1>>(key, by_owner(buffer, &key));
        }
    };
    let direct = |table: &mut Chained<1>, number: usize, key: u64| {
        if is_set(number) {
            table.replace(key);
        } else {
            check::<Chained<1>>(key, directly(table, &key));
        }
    };
    // Both, so that neither comes from memory for the first time later.
    for (number, key) in requests.keys.iter().cycle().take(WARMING_LOOKUPS_MAX).enumerate() {
        through(&mut buffer, number, *key);
        direct(&mut table, number, *key);
        if buffer.stats().trials > 0 {
            break;
        }
    }
    for round in 1..=GAIN_ROUNDS {
        let keys = requests.round(round);
        for way in [round % 2, 1 - round % 2] {
            let started = thread_cpu_time();
            for (number, key) in keys.iter().enumerate() {
                match way {
                    0 => direct(&mut table, number, *key),
                    _ => through(&mut buffer, number, *key),
                }
            }
            rates[way].push(keys.len() as f64 / (thread_cpu_time() - started).as_secs_f64());
        }
    }
    rates.map(median)
}
