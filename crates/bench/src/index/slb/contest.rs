//! The same lookups without and with a buffer, by turns in one process. Rates are of CPU time, since others may run.

use std::hint::black_box;

use alluvium_index::slb::{Config, OwnedBuffer, SharedBuffer, Stats};
use alluvium_model::simulator::RequestStream;

use super::chained::Chained;
use super::subject::{Subject, key_of};
use crate::process::thread_cpu_time;

/// Skew of requests, that of the thesis.
pub const SKEW: f64 = 0.99;

/// Rounds: each asks for the same keys in all ways.
const ROUNDS: usize = 7;

/// Rounds at most until both buffers have decided.
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

/// Median rates, and medians of the ratios of each round to its direct lookups.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub direct_per_s: f64,
    /// Through a buffer of each form.
    pub through: [Through; 2],
}

/// One way through a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Through {
    pub name: &'static str,
    pub per_s: f64,
    pub ratio: f64,
    pub stats: Stats,
}

/// Runs all rounds. Buffers are warmed first, until they have decided or for so many rounds.
///
/// # Panics
/// When a lookup returns another item than that of its key.
pub fn run<S: Subject>(index: S, requests: &Requests, config: Config) -> Outcome {
    // Owned by one of them, as it would be, so that readers reach it in as many steps as direct lookups.
    let shared = SharedBuffer::new(index, config);
    let index = shared.index();
    let mut reader = shared.reader();
    let mut owned = OwnedBuffer::new(index, config);
    for round in (0..=ROUNDS).cycle().take(WARMING_ROUNDS_MAX) {
        if reader.stats().trials > 0 && owned.stats().trials > 0 {
            break;
        }
        // One after the other: lookups in between would add to what either compares.
        requests.round(round).iter().for_each(|key| check::<S>(*key, reader.get(key)));
        requests.round(round).iter().for_each(|key| check::<S>(*key, owned.get(key)));
    }
    let mut rates: [Vec<f64>; 3] = Default::default();
    for round in 1..=ROUNDS {
        let keys = requests.round(round);
        let per_s = |work: &mut dyn FnMut()| {
            let started = thread_cpu_time();
            work();
            keys.len() as f64 / (thread_cpu_time() - started).as_secs_f64()
        };
        // Each way goes first in some round.
        for way in (0..3).map(|step| (step + round) % 3) {
            let rate = match way {
                0 => per_s(&mut || keys.iter().for_each(|key| check::<S>(*key, directly(index, key)))),
                1 => per_s(&mut || keys.iter().for_each(|key| check::<S>(*key, owned.get(key)))),
                _ => per_s(&mut || keys.iter().for_each(|key| check::<S>(*key, reader.get(key)))),
            };
            rates[way].push(rate);
        }
    }
    let through = |way: usize, name, stats| Through {
        name,
        per_s: median(rates[way].clone()),
        ratio: median(rates[way].iter().zip(&rates[0]).map(|(with, without)| with / without).collect()),
        stats,
    };
    Outcome {
        direct_per_s: median(rates[0].clone()),
        through: [through(1, "owned", owned.stats()), through(2, "shared", reader.stats())],
    }
}

/// A lookup that comes to the index anew, as one through a buffer does: a loop of nothing else would keep the fields of
/// the index in registers.
#[inline(always)]
fn directly<'a, S: Subject>(index: &'a S, key: &u64) -> Option<S::Item<'a>> {
    black_box(index).search(key).map(|(_, item)| item)
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
        check::<S>(*key, buffer.get(key));
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
                _ => keys.iter().for_each(|key| check::<S>(*key, buffer.get(key))),
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
            check::<Chained<1>>(key, buffer.get(&key));
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
