//! What the figures of caches share: requests by popularity, and caches that answer them.
//!
//! The traces of the theses are not public. Requests are drawn by Zipf's law instead, independently of each other, in
//! the mix that the text states. Rates are per second of processor time of the busiest thread.

use std::path::PathBuf;

use alluvium_bench::BenchError;
use alluvium_bench::cache::documents::{Documents, Maker, key};
use alluvium_bench::cache::items::wrong;
use alluvium_bench::cache::memcached::Memcached;
use alluvium_bench::cache::requests;
use alluvium_bench::cache::speed::together;
use alluvium_bench::cache::worker::Tally;
use alluvium_bench::process::thread_cpu_time;
use alluvium_bench::random::{Random, mix};
use alluvium_cache::Cache;
#[cfg(target_os = "linux")]
use alluvium_cache::SurvivingCache;
use lz4_flex::block::compress;

/// The program of memcached, where it is installed.
pub fn find_memcached() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join("memcached"))
        .find(|program| program.is_file())
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Get,
    Set,
    Remove,
}

/// A request for the item of a number. The lower the number, the more popular the item is.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub number: u32,
    pub action: Action,
}

/// Percent of the requests that get and that set an item; the others remove one.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    pub gets: f64,
    pub sets: f64,
}

impl Mix {
    /// Gets and sets only.
    pub fn of_gets(gets: f64) -> Self {
        Self { gets, sets: 100.0 - gets }
    }

    fn action(self, percent: f64) -> Action {
        if percent < self.gets {
            Action::Get
        } else if percent < self.gets + self.sets {
            Action::Set
        } else {
            Action::Remove
        }
    }
}

/// Draws requests. Gets and sets are for items by popularity. Any item is removed: if popular ones were, gets would
/// find nothing.
pub fn draw_requests(
    keys: u32,
    skew: f64,
    mix_of: Mix,
    count: usize,
    seed: u64,
) -> Result<Vec<Request>, BenchError> {
    let numbers = requests::numbers(u64::from(keys), skew, count, seed)?;
    let mut random = Random::new(seed, u64::from(keys));
    let request = |(at, number): (usize, u32)| {
        let percent = mix(seed ^ !(at as u64)) as f64 / u64::MAX as f64 * 100.0;
        match mix_of.action(percent) {
            Action::Remove => {
                Request { number: random.below(u64::from(keys)) as u32, action: Action::Remove }
            }
            action => Request { number, action },
        }
    };
    Ok(numbers.into_iter().enumerate().map(request).collect())
}

/// The value of each item.
pub enum Values {
    /// Documents, made before the clock starts.
    Documents { bytes: Vec<u8>, ends: Vec<usize> },
    /// Values of one size that have the item's number in them.
    Numbered(usize),
}

impl Values {
    /// Documents of `count` items.
    pub fn documents(documents: Documents, count: u32) -> Result<Self, BenchError> {
        let maker = Maker::new(documents)?;
        let (mut bytes, mut ends, mut value) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..count {
            maker.make(u64::from(number), &mut value);
            bytes.extend_from_slice(&value);
            ends.push(bytes.len());
        }
        Ok(Self::Documents { bytes, ends })
    }

    /// Documents with each value compressed by itself, where that makes it smaller.
    pub fn compressed_each(&self) -> Self {
        let ends = match self {
            Self::Documents { ends, .. } => ends,
            Self::Numbered(len) => return Self::Numbered(*len),
        };
        let (mut bytes, mut compressed_ends, mut buffer) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..ends.len() {
            let value = self.of(number as u32, &mut buffer);
            let compressed = compress(value);
            bytes.extend_from_slice(if compressed.len() < value.len() { &compressed } else { value });
            compressed_ends.push(bytes.len());
        }
        Self::Documents { bytes, ends: compressed_ends }
    }

    /// The value of an item, in `buffer` if it has to be made.
    #[inline(always)]
    pub fn of<'a>(&'a self, number: u32, buffer: &'a mut Vec<u8>) -> &'a [u8] {
        match self {
            Self::Documents { bytes, ends } => {
                let number = number as usize;
                let start = if number == 0 { 0 } else { ends[number - 1] };
                &bytes[start..ends[number]]
            }
            Self::Numbered(len) => {
                buffer.resize(*len, 0);
                let stamp = mix(u64::from(number)).to_le_bytes();
                let stamped = stamp.len().min(*len);
                buffer[..stamped].copy_from_slice(&stamp[..stamped]);
                buffer
            }
        }
    }

    /// Bytes of key and value, on average.
    pub fn payload_bytes_mean(&self) -> usize {
        key(0).len()
            + match self {
                Self::Documents { bytes, ends } => bytes.len() / ends.len().max(1),
                Self::Numbered(len) => *len,
            }
    }
}

/// A cache that answers requests.
pub trait Subject {
    /// Whether the item of `key` is `value`; `None` if it has none.
    fn get(&mut self, key: &[u8], value: &[u8]) -> Result<Option<bool>, BenchError>;
    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError>;
    fn remove(&mut self, key: &[u8]) -> Result<(), BenchError>;

    /// As [`set`](Self::set), before [`end_load`](Self::end_load) at the latest.
    fn load(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        self.set(key, value)
    }

    fn end_load(&mut self) -> Result<(), BenchError> {
        Ok(())
    }
}

impl<S: Subject> Subject for &mut S {
    #[inline(always)]
    fn get(&mut self, key: &[u8], value: &[u8]) -> Result<Option<bool>, BenchError> {
        S::get(self, key, value)
    }

    #[inline(always)]
    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        S::set(self, key, value)
    }

    #[inline(always)]
    fn remove(&mut self, key: &[u8]) -> Result<(), BenchError> {
        S::remove(self, key)
    }

    fn load(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        S::load(self, key, value)
    }

    fn end_load(&mut self) -> Result<(), BenchError> {
        S::end_load(self)
    }
}

macro_rules! subject {
    ($cache:ty) => {
        impl Subject for &$cache {
            #[inline(always)]
            fn get(&mut self, key: &[u8], value: &[u8]) -> Result<Option<bool>, BenchError> {
                Ok(self.get_with(key, |item| item.value == value))
            }

            #[inline(always)]
            fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
                <$cache>::set(self, key, value)
                    .map(drop)
                    .map_err(|error| BenchError::Usage(error.to_string()))
            }

            #[inline(always)]
            fn remove(&mut self, key: &[u8]) -> Result<(), BenchError> {
                <$cache>::remove(self, key);
                Ok(())
            }
        }
    };
}

subject!(Cache);
#[cfg(target_os = "linux")]
subject!(SurvivingCache);

impl Subject for Memcached {
    fn get(&mut self, key: &[u8], value: &[u8]) -> Result<Option<bool>, BenchError> {
        Memcached::get(self, key, value)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        Memcached::set(self, key, value)
    }

    fn remove(&mut self, key: &[u8]) -> Result<(), BenchError> {
        Memcached::remove(self, key)
    }

    fn load(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        self.set_later(key, value)
    }

    fn end_load(&mut self) -> Result<(), BenchError> {
        self.finish_sets()
    }
}

/// What follows a get that finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterMiss {
    Set,
    Nothing,
}

/// Sets the `count` most popular items, the most popular last.
pub fn load(mut subject: impl Subject, values: &Values, count: u32) -> Result<(), BenchError> {
    let mut buffer = Vec::new();
    for number in (0..count).rev() {
        subject.load(&key(u64::from(number)), values.of(number, &mut buffer))?;
    }
    subject.end_load()
}

/// Performs requests, and verifies what gets find.
pub fn replay(
    mut subject: impl Subject,
    values: &Values,
    requests: &[Request],
    after_miss: AfterMiss,
) -> Result<Tally, BenchError> {
    let mut buffer = Vec::new();
    let (mut gets, mut misses) = (0, 0);
    let started = thread_cpu_time();
    for &Request { number, action } in requests {
        let key = key(u64::from(number));
        if action == Action::Remove {
            subject.remove(&key)?;
            continue;
        }
        let value = values.of(number, &mut buffer);
        if action == Action::Set {
            subject.set(&key, value)?;
            continue;
        }
        gets += 1;
        match subject.get(&key, value)? {
            Some(true) => {}
            Some(false) => return Err(wrong(u64::from(number))),
            None => {
                misses += 1;
                if after_miss == AfterMiss::Set {
                    subject.set(&key, value)?;
                }
            }
        }
    }
    let cpu_s = (thread_cpu_time() - started).as_secs_f64();
    Ok(Tally { requests: requests.len() as u64, gets, misses, cpu_s, cpu_s_max: cpu_s })
}

/// As [`replay`], with as many threads at once, each of which performs its part of the requests.
pub fn replay_together<S: Subject + Copy + Send + Sync>(
    subject: S,
    values: &Values,
    requests: &[Request],
    after_miss: AfterMiss,
    threads: usize,
) -> Result<Tally, BenchError> {
    let mut parts: Vec<&[Request]> =
        requests.chunks(requests.len().div_ceil(threads.max(1)).max(1)).collect();
    let (tally, _) = together(&mut parts, |part| replay(subject, values, part, after_miss))?;
    Ok(tally)
}

/// Million requests a second of processor time.
pub fn millions_per_s(tally: &Tally) -> f64 {
    tally.requests as f64 / tally.cpu_s_max.max(1e-9) / 1e6
}

/// The share of the gets that found nothing.
pub fn miss_ratio(tally: &Tally) -> f64 {
    tally.misses as f64 / tally.gets.max(1) as f64
}

/// Threads of the curves: one, and as many as the machine has processors, up to `most`.
pub fn threads(most: usize) -> Vec<usize> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from).min(most);
    let mut threads = vec![1, processors.max(2)];
    if processors >= 4 {
        threads.insert(1, processors / 2);
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_mix() {
        let requests = draw_requests(1000, 0.9, Mix { gets: 74.14, sets: 2.03 }, 100_000, 3).unwrap();
        let percent = |action: Action| {
            requests.iter().filter(|request| request.action == action).count() as f64 / 1000.0
        };
        assert!((percent(Action::Get) - 74.14).abs() < 1.0);
        assert!((percent(Action::Set) - 2.03).abs() < 0.3);
        assert!((percent(Action::Remove) - 23.84).abs() < 1.0);
    }
}
