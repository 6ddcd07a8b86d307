//! The same lookups without and with a buffer, alternating in one process. Rates are per CPU time, since other programs
//! may run.

use std::hint::black_box;
use std::time::Instant;

use alluvium_index::slb::{Buffer, Calibration, Config, Lookup, Reader, Stats};
use alluvium_model::RequestStream;

use super::subject::{Subject, key_of};
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

    /// The requests of all rounds.
    pub fn all(&self) -> &[u64] {
        &self.keys
    }

    /// The requests of all rounds again and again, as they are looked up: buffers are calibrated by them before the
    /// clock starts.
    pub fn repeated(&self) -> impl Iterator<Item = u64> {
        self.keys.iter().copied().cycle()
    }

    /// The requests of a round.
    pub fn round(&self, number: usize) -> &[u64] {
        let number = number % ROUNDS;
        &self.keys[(number + 1) * self.round_len..(number + 2) * self.round_len]
    }
}

/// Number of keys of a call for many.
const BATCH: usize = 64;

/// Median rates, and medians of the ratios to direct lookups, each taken over two rounds.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Direct lookups, one call per key, then in a loop.
    pub direct_per_s: [f64; 2],
    /// Through a buffer, with one key per call and with many.
    pub through: [Through; 2],
}

/// One way to use a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Through {
    /// Median of the rates.
    pub per_s: f64,
    /// Median of the ratios.
    pub ratio: f64,
    /// What decided about the table.
    pub calibration: Calibration,
    /// The counters at the end.
    pub stats: Stats,
}

/// How lookups are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In the index itself.
    Direct,
    /// By the buffer.
    Through,
}

/// A buffer and its reader, looked up as by their owner.
struct Front<S> {
    buffer: Buffer<S>,
    reader: Reader,
    calibration: Calibration,
    is_many: bool,
}

impl<S: Subject> Front<S> {
    fn new(index: S, config: Config, is_many: bool, requests: &Requests) -> Self {
        let mut buffer = Buffer::new(index, config);
        let calibration = buffer.calibrate(requests.repeated(), if is_many { BATCH } else { 1 });
        Self { buffer, reader: Reader::default(), calibration, is_many }
    }

    fn look_up(&mut self, way: Way, keys: &[u64]) {
        let Self { buffer, reader, .. } = self;
        match (way, self.is_many) {
            (Way::Direct, false) => {
                let get: Get<S> = |buffer, _, key| buffer.index().search(key).map(|(_, item)| item);
                singly(buffer, reader, black_box(get), keys);
            }
            (Way::Through, false) => {
                let get: Get<S> = Buffer::get;
                singly(buffer, reader, black_box(get), keys);
            }
            (Way::Direct, true) => {
                let index = buffer.index();
                keys.iter().for_each(|key| check::<S>(*key, index.search(key).map(|(_, item)| item)));
            }
            (Way::Through, true) => {
                for keys in keys.chunks(BATCH) {
                    buffer.get_each(reader, keys, |key, item| check::<S>(*key, item));
                }
            }
        }
    }

    /// Looks up the keys of a round, and returns their number.
    fn run(&mut self, requests: &Requests, round: usize, way: Way) -> usize {
        let keys = requests.round(round);
        self.look_up(way, keys);
        keys.len()
    }
}

/// Runs up to `rounds_max` rounds, each both ways in alternating order, and stops before a pair of rounds if `is_over`.
/// `run` gets the number of the round and the way, and returns the number of operations. Returns the rates without the
/// buffer and with it.
fn alternate(
    rounds_max: usize,
    is_over: impl Fn(usize) -> bool,
    mut run: impl FnMut(usize, Way) -> usize,
) -> [Vec<f64>; 2] {
    let mut rates: [Vec<f64>; 2] = Default::default();
    for round in 0..rounds_max {
        if round.is_multiple_of(2) && is_over(round) {
            break;
        }
        for side in [round % 2, 1 - round % 2] {
            let started = thread_cpu_time();
            let operations = run(round, [Way::Direct, Way::Through][side]);
            rates[side].push(operations as f64 / (thread_cpu_time() - started).as_secs_f64());
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
    let mut front = Front::new(index, config, false, requests);
    let (direct, through) = measure(&mut front, requests);
    let mut front = Front::new(front.buffer.into_index(), config, true, requests);
    let (direct_each, through_each) = measure(&mut front, requests);
    Outcome { direct_per_s: [direct, direct_each], through: [through, through_each] }
}

/// The rate of direct lookups, and what the buffer makes of it.
fn measure<S: Subject>(front: &mut Front<S>, requests: &Requests) -> (f64, Through) {
    let began = Instant::now();
    let is_over = |round| round >= ROUNDS && began.elapsed().as_secs_f64() > ROUNDS_S;
    let [direct, through] =
        alternate(SHORT_ROUNDS_MAX, is_over, |round, way| front.run(requests, round, way));
    let ratios: Vec<f64> = through.iter().zip(&direct).map(|(with, without)| with / without).collect();
    let (calibration, stats) = (front.calibration, front.reader.stats());
    let through =
        Through { per_s: median(through), ratio: median(of_two_rounds(ratios)), calibration, stats };
    (median(direct), through)
}

/// Combines two rounds, one with each order, into one number, since whichever way comes second finds the memory of the
/// same keys in the processor's caches.
fn of_two_rounds(numbers: Vec<f64>) -> Vec<f64> {
    numbers.as_chunks::<2>().0.iter().map(|[one, other]| (one * other).sqrt()).collect()
}

// Single lookups are calls, since a loop of nothing else would keep the fields of the index in registers. Both ways
// call functions that the compiler does not know, from the same instructions: how it calls a function that it knows,
// and what it keeps in registers there, differ by more than the effect to be measured.

type Get<S> = for<'a> fn(&'a Buffer<S>, &mut Reader, &u64) -> Option<<S as Lookup>::Item<'a>>;

#[inline(never)]
fn singly<S: Subject>(buffer: &Buffer<S>, reader: &mut Reader, get: Get<S>, keys: &[u64]) {
    keys.iter().for_each(|key| check::<S>(*key, get(buffer, reader, key)));
}

/// Panics if `item` is not that of `key`.
#[inline(always)]
pub fn check<S: Subject>(key: u64, item: Option<S::Item<'_>>) {
    assert!(item.is_some_and(|item| S::is_right(key, item)), "another item than that of key {key}");
}

/// The median.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Medians of the rates of a few rounds, without the buffer and with it. `run` gets the number of the round and the
/// way, and returns the number of operations.
pub fn gain(run: impl FnMut(usize, Way) -> usize) -> [f64; 2] {
    alternate(GAIN_ROUNDS, |_| false, run).map(|rates| median(of_two_rounds(rates)))
}

/// Lookups per second without and with a buffer of each kind.
pub fn gains<S: Subject>(mut index: S, requests: &Requests, configs: &[Config]) -> Vec<[f64; 2]> {
    let mut gains = Vec::new();
    for config in configs {
        let mut front = Front::new(index, *config, false, requests);
        gains.push(gain(|round, way| front.run(requests, round, way)));
        index = front.buffer.into_index();
    }
    gains
}
