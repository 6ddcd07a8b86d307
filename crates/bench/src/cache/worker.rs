//! One thread's part of a benchmark.

use alluvium_cache::BATCH_LEN;

use super::engine::Engine;
use super::items::{Keys, Value, is_value, wrong};
use super::options::Case;
use super::requests::{IS_SET, draw};
use crate::error::BenchError;
use crate::process::thread_cpu_time;
use crate::random::mix;

/// Which items a worker may touch.
#[derive(Clone, Copy, Debug)]
pub enum Share {
    /// Reads and writes those of the exclusive cache with this number, among this many.
    Owner(usize, usize),
    /// Reads all, writes those of this partition.
    Partition(usize),
    /// Reads and writes all; when loading, writes those whose number has this remainder.
    All(usize, usize),
}

/// The work that a worker did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Requests in total.
    pub requests: u64,
    /// Of these, gets.
    pub gets: u64,
    /// Gets that found nothing.
    pub misses: u64,
    /// CPU time of the threads, in seconds.
    pub cpu_s: f64,
    /// CPU time of the busiest thread.
    pub cpu_s_max: f64,
}

/// A thread's handle of a cache or store, and its requests.
#[derive(Debug)]
pub struct Worker<E: Engine> {
    cache: E,
    case: Case,
    share: Share,
    requests: Vec<u32>,
}

impl<E: Engine> Worker<E> {
    /// A worker without requests.
    pub fn new(cache: E, case: Case, share: Share) -> Self {
        Self { cache, case, share, requests: Vec::new() }
    }

    /// Its handle.
    pub fn cache(&self) -> &E {
        &self.cache
    }

    fn may_touch(&self, keys: &mut Keys, number: u64, is_set: bool) -> bool {
        keys.set(0, number);
        match self.share {
            Share::Owner(owner, count) => self.cache.owner_of(keys.get(0), count) == owner,
            Share::Partition(own) => !is_set || self.cache.partition_of(keys.get(0)) == own,
            Share::All(..) => true,
        }
    }

    /// Draws requests: item numbers by popularity, `get_ratio` percent of them gets.
    pub fn draw(&mut self, count: usize, skew: f64, get_ratio: u8, seed: u64) -> Result<(), BenchError> {
        let mut keys = Keys::new(1, self.case.key_bytes);
        let stream = match self.share {
            Share::Owner(number, _) | Share::Partition(number) | Share::All(number, _) => number as u64,
        };
        let mut requests = draw(self.case.items, skew, count, get_ratio, mix(seed ^ stream << 32))?;
        requests
            .retain(|request| self.may_touch(&mut keys, u64::from(request & !IS_SET), request & IS_SET != 0));
        self.requests = requests;
        Ok(())
    }

    /// Uses requests that were drawn elsewhere.
    pub fn set_requests(&mut self, requests: Vec<u32>) {
        self.requests = requests;
    }

    /// Sets all items of the worker's share, in batches.
    pub fn load(&mut self) -> Result<Tally, BenchError> {
        let mut probe = Keys::new(1, self.case.key_bytes);
        let mut batch = Batch::new(&self.case);
        let mut tally = Tally::default();
        for number in 0..self.case.items {
            let is_mine = match self.share {
                Share::All(own, count) => number % count as u64 == own as u64,
                _ => self.may_touch(&mut probe, number, true),
            };
            if is_mine {
                tally.requests += 1;
                batch.push(number);
                if batch.len == BATCH_LEN {
                    batch.set(&mut self.cache)?;
                }
            }
        }
        batch.set(&mut self.cache)?;
        Ok(tally)
    }

    /// Performs the requests, `batch` at a time.
    pub fn work(&mut self, batch: usize) -> Result<Tally, BenchError> {
        let started = thread_cpu_time();
        let mut tally =
            if batch == 1 { self.work_one_by_one() } else { self.work_in_batches(batch.min(BATCH_LEN)) }?;
        tally.cpu_s = (thread_cpu_time() - started).as_secs_f64();
        tally.cpu_s_max = tally.cpu_s;
        Ok(tally)
    }

    fn work_one_by_one(&mut self) -> Result<Tally, BenchError> {
        let mut keys = Keys::new(1, self.case.key_bytes);
        let mut value = Value::new(self.case.value_bytes);
        let (mut gets, mut misses) = (0, 0);
        for &request in &self.requests {
            let number = u64::from(request & !IS_SET);
            keys.set(0, number);
            if request & IS_SET != 0 {
                self.cache.set(keys.get(0), value.of(number))?;
                continue;
            }
            gets += 1;
            match self.cache.get(keys.get(0), |value| is_value(value, number)) {
                Some(true) => {}
                Some(false) => return Err(wrong(number)),
                None => misses += 1,
            }
        }
        Ok(Tally { requests: self.requests.len() as u64, gets, misses, ..Tally::default() })
    }

    fn work_in_batches(&mut self, len: usize) -> Result<Tally, BenchError> {
        let mut sets = Batch::new(&self.case);
        let mut gets = Batch::new(&self.case);
        let mut tally = Tally { requests: self.requests.len() as u64, ..Tally::default() };
        for &request in &self.requests {
            let batch = if request & IS_SET != 0 { &mut sets } else { &mut gets };
            batch.push(u64::from(request & !IS_SET));
            if gets.len == len {
                tally.gets += len as u64;
                tally.misses += gets.get(&self.cache)?;
            }
            if sets.len == len {
                sets.set(&mut self.cache)?;
            }
        }
        tally.gets += gets.len as u64;
        tally.misses += gets.get(&self.cache)?;
        sets.set(&mut self.cache)?;
        Ok(tally)
    }
}

/// Items of one call.
struct Batch {
    numbers: [u64; BATCH_LEN],
    len: usize,
    keys: Keys,
    values: Vec<Value>,
}

impl Batch {
    fn new(case: &Case) -> Self {
        Self {
            numbers: [0; BATCH_LEN],
            len: 0,
            keys: Keys::new(BATCH_LEN, case.key_bytes),
            values: (0..BATCH_LEN).map(|_| Value::new(case.value_bytes)).collect(),
        }
    }

    #[inline(always)]
    fn push(&mut self, number: u64) {
        self.numbers[self.len] = number;
        self.keys.set(self.len, number);
        self.len += 1;
    }

    /// Sets the items and empties the batch.
    fn set(&mut self, cache: &mut impl Engine) -> Result<(), BenchError> {
        for (value, &number) in self.values.iter_mut().zip(&self.numbers[..self.len]) {
            value.of(number);
        }
        let items: [(&[u8], &[u8]); BATCH_LEN] =
            std::array::from_fn(|at| (self.keys.get(at), self.values[at].bytes()));
        cache.set_many(&items[..self.len])?;
        self.len = 0;
        Ok(())
    }

    /// Gets the items, verifies them, and empties the batch. Returns the number of misses.
    fn get(&mut self, cache: &impl Engine) -> Result<u64, BenchError> {
        let keys: [&[u8]; BATCH_LEN] = std::array::from_fn(|at| self.keys.get(at));
        let (mut misses, mut wrong_number) = (0, None);
        cache.get_many(&keys[..self.len], |at, value| match value {
            Some(value) if is_value(value, self.numbers[at]) => {}
            Some(_) => wrong_number = Some(self.numbers[at]),
            None => misses += 1,
        });
        self.len = 0;
        wrong_number.map_or(Ok(misses), |number| Err(wrong(number)))
    }
}
