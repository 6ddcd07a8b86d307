//! Random operations compared with a map: a cache may forget items, but never returns a wrong one.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use alluvium_cache::{
    Access, Builder, Cache, Codec, Compressed, Concurrent, ConcurrentReads, Cursor, Eviction, Exclusive,
    IncrementError, Outcome, SetOptions, Token, Writer,
};
use alluvium_io::SimulatedClock;
use proptest::prelude::*;

use super::handles::Handle;
use super::operations::{Operation, operations, operations_in_cells, operations_in_zone};

/// The expected content of an item, if it is present.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    value: Vec<u8>,
    flags: u32,
    /// Milliseconds since the start.
    ends_at: Option<u64>,
}

/// Keys of several lengths, with common beginnings.
fn key(number: u16) -> Vec<u8> {
    let mut key = vec![b'k'; usize::from(number % 5) * 7];
    key.extend_from_slice(&number.to_le_bytes());
    key
}

struct Pair<A: Access, H: Handle<A>> {
    handle: H,
    mode: PhantomData<A>,
    clock: SimulatedClock,
    known: HashMap<u16, Known>,
    now: u64,
    stamp: u8,
}

impl<A: Access, H: Handle<A>> Pair<A, H> {
    fn new(builder: Builder) -> Self {
        let clock = SimulatedClock::default();
        let cache = builder.clock(Arc::new(clock.clone())).build_as().unwrap();
        Self { handle: H::of(cache), mode: PhantomData, clock, known: HashMap::new(), now: 0, stamp: 0 }
    }

    fn value(&mut self, len: usize) -> Vec<u8> {
        self.stamp = self.stamp.wrapping_add(1);
        (0..len).map(|at| self.stamp.wrapping_add((at / 3) as u8)).collect()
    }

    fn expected(&self, number: u16) -> Option<&Known> {
        self.known.get(&number).filter(|known| known.ends_at.is_none_or(|ends_at| ends_at > self.now))
    }

    /// An item that was found must be the last one that was set.
    fn judge(&self, number: u16, found: Option<(&[u8], u32, Option<Duration>)>) {
        let Some((value, flags, time_to_live)) = found else { return };
        let known = self.expected(number).unwrap_or_else(|| panic!("{number} should be absent"));
        assert_eq!((value, flags), (&known.value[..], known.flags), "{number}");
        let left = known.ends_at.map(|ends_at| Duration::from_millis(ends_at - self.now));
        assert_eq!(time_to_live, left, "{number}");
    }

    fn check(&self, number: u16) -> bool {
        self.handle
            .cache()
            .get_with(&key(number), |item| {
                self.judge(number, Some((item.value, item.flags, item.time_to_live)))
            })
            .is_some()
    }

    fn learn(&mut self, number: u16, value: Vec<u8>, options: SetOptions) {
        let ends_at = options.time_to_live.map(|left| self.now + left.as_millis() as u64);
        self.known.insert(number, Known { value, flags: options.flags, ends_at });
    }

    fn options(flags: u32, time: Option<u16>) -> SetOptions {
        SetOptions { flags, time_to_live: time.map(|time| Duration::from_millis(time.into())) }
    }

    /// Tries to set an item that was just there. Upkeep that the write does first, such as a step to a smaller zone,
    /// may evict the item; nothing else may.
    fn set_if_unchanged(&mut self, number: u16, token: Token, value: &[u8], options: SetOptions) -> Outcome {
        let evicted = |handle: &H| {
            let stats = handle.cache().stats().total();
            stats.evicted + stats.evicted_by_index
        };
        let before = evicted(&self.handle);
        let outcome = self.handle.set_if_unchanged(&key(number), token, value, options).unwrap();
        assert!(outcome != Outcome::Absent || evicted(&self.handle) > before, "{number}");
        outcome
    }

    fn run(&mut self, operation: &Operation) {
        match *operation {
            Operation::Set(number, len) => {
                let value = self.value(len);
                if self.handle.set(&key(number), &value).is_ok() {
                    self.learn(number, value, SetOptions::default());
                }
            }
            Operation::SetWith(number, len, flags, time) => {
                let (value, options) = (self.value(len), Self::options(flags, time));
                if self.handle.set_with(&key(number), &value, options).is_ok() {
                    self.learn(number, value, options);
                }
            }
            Operation::Get(number) => {
                self.check(number);
                let value = self.handle.cache().get(&key(number));
                assert!(value.is_none() || value.as_ref() == self.expected(number).map(|known| &known.value));
            }
            Operation::GetMany(ref numbers) => {
                let keys: Vec<Vec<u8>> = numbers.iter().map(|&number| key(number)).collect();
                let mut asked = 0;
                self.handle.cache().get_many_with(&keys, |at, item| {
                    assert_eq!(at, asked);
                    asked += 1;
                    self.judge(numbers[at], item.map(|item| (item.value, item.flags, item.time_to_live)));
                });
                assert_eq!(asked, keys.len());
            }
            Operation::SetMany(ref sets) => {
                let fits = |len: usize| len < 1200;
                let items: Vec<(u16, Vec<u8>)> = sets
                    .iter()
                    .filter(|&&(_, len)| fits(len))
                    .map(|&(number, len)| (number, self.value(len)))
                    .collect();
                let pairs: Vec<_> = items.iter().map(|(number, value)| (key(*number), value)).collect();
                self.handle.set_many(&pairs).unwrap();
                for (number, value) in items {
                    self.learn(number, value, SetOptions::default());
                }
            }
            Operation::Remove(number) => {
                let was_there = self.handle.remove(&key(number));
                assert!(!was_there || self.expected(number).is_some());
                assert_eq!(self.handle.cache().get(&key(number)), None);
                self.known.remove(&number);
            }
            Operation::Add(number, len) => {
                let (value, options) = (self.value(len), SetOptions::default());
                match self.handle.add(&key(number), &value, options) {
                    Ok(Outcome::Done) => self.learn(number, value, options),
                    Ok(outcome) => assert!(outcome == Outcome::Differs && self.expected(number).is_some()),
                    Err(_) => {}
                }
            }
            Operation::Replace(number, len) => {
                let (value, options) = (self.value(len), SetOptions::default());
                match self.handle.replace(&key(number), &value, options) {
                    Ok(Outcome::Done) => {
                        assert!(self.expected(number).is_some());
                        self.learn(number, value, options);
                    }
                    Ok(outcome) => assert_eq!(outcome, Outcome::Absent),
                    Err(_) => {}
                }
            }
            Operation::Swap(number, other) => {
                let (value, options) = (self.value(16), SetOptions::default());
                let guess = self.known.get(&other).map_or(Vec::new(), |known| known.value.clone());
                let outcome = self.handle.compare_and_swap(&key(number), &guess, &value, options).unwrap();
                let expected = self.expected(number).map(|known| known.value == guess);
                match outcome {
                    Outcome::Done => assert_eq!(expected, Some(true)),
                    Outcome::Differs => assert_eq!(expected, Some(false)),
                    Outcome::Absent => {}
                }
                if outcome == Outcome::Done {
                    self.learn(number, value, options);
                }
            }
            Operation::IfUnchanged(number, len) => {
                let (value, options) = (self.value(len.min(1000)), Self::options(1, None));
                if let Some(token) = self.handle.cache().get_with(&key(number), |item| item.token()) {
                    match self.set_if_unchanged(number, token, &value, options) {
                        Outcome::Done => {
                            self.learn(number, value.clone(), options);
                            // Now the token is of the former content, unless both values are empty.
                            self.set_if_unchanged(number, token, &value, options);
                        }
                        Outcome::Differs => panic!("{number} has not changed"),
                        Outcome::Absent => {}
                    }
                }
            }
            Operation::Increment(number, by) => {
                let before = self.expected(number).cloned();
                let parsed: Option<i64> =
                    before.as_ref().and_then(|known| std::str::from_utf8(&known.value).ok()?.parse().ok());
                match self.handle.increment(&key(number), by, Some(7)) {
                    Ok(Some(sum)) => {
                        let fresh = sum == 7 + by;
                        assert!(fresh || parsed == Some(sum - by), "{before:?} + {by} = {sum}");
                        let kept = before.filter(|_| parsed == Some(sum - by));
                        let is_kept = self
                            .handle
                            .cache()
                            .get_with(&key(number), |item| (item.flags, item.time_to_live));
                        let known = match kept {
                            Some(known) if is_kept.is_none_or(|(flags, _)| flags == known.flags) => {
                                Known { value: sum.to_string().into_bytes(), ..known }
                            }
                            _ => Known { value: sum.to_string().into_bytes(), flags: 0, ends_at: None },
                        };
                        self.known.insert(number, known);
                        // An item that was forgotten and counted as new has no expiry.
                        if let Some((_, None)) = is_kept {
                            self.known.get_mut(&number).unwrap().ends_at = None;
                        }
                    }
                    Ok(None) => panic!("there is an initial value"),
                    Err(IncrementError::NotANumber) => assert!(before.is_some() && parsed.is_none()),
                    Err(error) => panic!("{error}"),
                }
            }
            Operation::Touch(number, time) => {
                let time = time.map(|time| Duration::from_millis(time.into()));
                if self.handle.touch(&key(number), time) == Ok(true) {
                    let now = self.now;
                    let known = self.known.get_mut(&number).expect("what is touched was set");
                    known.ends_at = time.map(|time| now + time.as_millis() as u64);
                }
            }
            Operation::Wait(milliseconds) => {
                self.clock.advance(Duration::from_millis(milliseconds.into()));
                self.now += u64::from(milliseconds);
            }
            Operation::Sweep => {
                self.handle.sweep();
                self.count();
            }
            Operation::Resize(kibibytes) => self.handle.resize(kibibytes << 10),
            Operation::Clear => {
                self.handle.clear();
                self.known.clear();
            }
        }
    }

    fn follow(&mut self, operations: &[Operation]) {
        operations.iter().for_each(|operation| self.run(operation));
        self.handle.sweep();
        self.count();
    }

    /// All ways of counting agree.
    fn count(&self) {
        let stats = self.handle.cache().stats().total();
        let mut found = Vec::new();
        let mut cursor = Some(Cursor::default());
        while let Some(at) = cursor {
            cursor = self.handle.cache().scan(at, 3, |key, item| {
                found.push((key.to_vec(), item.value.to_vec(), item.flags, item.time_to_live));
            });
        }
        assert_eq!(stats.items, found.len() as u64, "{stats:?}");
        let iterated: Vec<_> = self.handle.cache().iter().map(|item| item.key).collect();
        assert_eq!(iterated.len(), found.len());
        let left = stats.removed + stats.evicted + stats.evicted_by_index + stats.expired;
        assert_eq!(stats.inserted - left, stats.items);
        for (key, value, flags, time_to_live) in found {
            let number = u16::from_le_bytes([key[key.len() - 2], key[key.len() - 1]]);
            self.judge(number, Some((&value, flags, time_to_live)));
        }
    }
}

fn never_lies<A: Access, H: Handle<A>>(
    eviction: Eviction,
    partitions: usize,
    bits: u32,
    operations: &[Operation],
) {
    let builder = Cache::builder()
        .memory_limit(120 << 10)
        .partitions(partitions)
        .payload_bytes_mean(300)
        .eviction(eviction)
        .position_bits(bits);
    follow::<A, H>(builder, operations);
}

fn follow<A: Access, H: Handle<A>>(builder: Builder, operations: &[Operation]) {
    Pair::<A, H>::new(builder).follow(operations);
}

const ALL: [Eviction; 4] = [Eviction::S3Fifo, Eviction::Fifo, Eviction::Lru, Eviction::ApproximateLru];

/// Positions so narrow that they repeat after a few laps, and full-width ones.
const BITS: [u32; 2] = [18, 47];

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_policy_and_mode_may_forget_but_never_lies(operations in operations()) {
        for eviction in ALL {
            for bits in BITS {
                never_lies::<Exclusive, Cache<Exclusive>>(eviction, 1, bits, &operations);
                never_lies::<ConcurrentReads, Writer>(eviction, 1, bits, &operations);
                never_lies::<Concurrent, Cache<Concurrent>>(eviction, 2, bits, &operations);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn tiny_items_may_be_forgotten_but_are_never_wrong(operations in operations_in_cells(8)) {
        follow_in_cells(Cache::builder().payload_bytes_mean(12), &operations);
    }

    #[test]
    fn items_of_one_size_may_be_forgotten_but_are_never_wrong(operations in operations_in_cells(50)) {
        follow_in_cells(Cache::builder().payload_bytes_fixed(58), &operations);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn compressed_items_may_be_forgotten_but_are_never_wrong(
        operations in operations_in_zone(),
        hot_percent in 1_u8..=100,
    ) {
        for codec in [Codec::Lz4, Codec::None] {
            follow_compressed(Compressed { codec, hot_percent }, 530 << 10, &operations);
        }
    }
}

// Fewer, since each cache learns a dictionary first.
#[cfg(feature = "zstd")]
proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn items_with_a_dictionary_may_be_forgotten_but_are_never_wrong(
        operations in operations_in_zone(),
        hot_percent in 1_u8..=100,
    ) {
        follow_compressed(Compressed { codec: Codec::Zstd, hot_percent }, 900 << 10, &operations);
    }
}

fn follow_compressed(compressed: Compressed, memory: usize, operations: &[Operation]) {
    let learns = compressed.codec.to_string() == "zstd";
    let builder = Cache::builder().memory_limit(memory).payload_bytes_mean(200).compressed(compressed);
    for eviction in ALL {
        let builder = builder.clone().eviction(eviction);
        follow_full::<Exclusive, Cache<Exclusive>>(builder.clone(), learns, operations);
        follow_full::<ConcurrentReads, Writer>(builder.clone().position_bits(18), learns, operations);
    }
    follow_full::<Concurrent, Cache<Concurrent>>(builder, learns, operations);
}

/// Follows operations on a cache that was filled before, so that most items are in its zone.
fn follow_full<A: Access, H: Handle<A>>(builder: Builder, learns: bool, operations: &[Operation]) {
    let mut pair = Pair::<A, H>::new(builder);
    (0..900).for_each(|number| pair.run(&Operation::Set(number, 600)));
    // All blocks are written with a dictionary, if the codec has one.
    let zone = |pair: &Pair<A, H>| pair.handle.cache().stats().total().zone;
    let mut round = 0;
    while learns && zone(&pair).dictionaries_learned == 0 {
        assert!(round < 10_000, "{:?}", zone(&pair));
        (0..900).for_each(|number| pair.run(&Operation::Set(number, 500 + round % 100)));
        round += 1;
    }
    (0..900).for_each(|number| pair.run(&Operation::Set(number, 600)));
    pair.follow(operations);
    assert!(pair.handle.cache().stats().total().zone.demoted > 100);
}

fn follow_in_cells(builder: Builder, operations: &[Operation]) {
    follow::<Exclusive, Cache<Exclusive>>(builder.clone().memory_limit(50 << 10), operations);
    follow::<ConcurrentReads, Writer>(builder.clone().memory_limit(50 << 10), operations);
    follow::<Concurrent, Cache<Concurrent>>(builder.memory_limit(100 << 10).partitions(2), operations);
}
