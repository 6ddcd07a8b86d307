//! Single requests, and the check of their answers.

use alluvium_bench::BenchError;
use alluvium_bench::random::Random;

use super::engine::Reader;
use super::items::{GROUP_ITEMS, Key, group_key, is_value, key_of, missing, number_of, prefix_of, wrong};
use super::turn::Step;

/// Gets an item that exists. With `is_lent`, Alluvium lends the value instead of copying it.
///
/// # Errors
/// Another value or none, and those of the engine.
pub fn get_present(
    reader: &mut dyn Reader,
    (number, key): (u64, Key),
    value_bytes: usize,
    is_lent: bool,
) -> Result<(), BenchError> {
    let mut is_right = false;
    let mut look = |value: &[u8]| is_right = is_value(value, number, value_bytes);
    let is_found = if is_lent { reader.get_lent(&key, &mut look) } else { reader.get(&key, &mut look) }?;
    match (is_found, is_right) {
        (true, true) => Ok(()),
        (true, false) => Err(wrong(number)),
        (false, _) => Err(missing(number)),
    }
}

/// Gets an item that does not exist.
///
/// # Errors
/// A value, and those of the engine.
pub fn get_absent(reader: &mut dyn Reader, number: u64) -> Result<(), BenchError> {
    match reader.get(&key_of(number), &mut |_| {})? {
        true => Err(BenchError::WrongAnswer(format!("item {number}, which was never put, was found"))),
        false => Ok(()),
    }
}

/// Reads a group, each of whose items must be found once.
///
/// # Errors
/// A wrong or missing item, and those of the engine.
pub fn scan_group(reader: &mut dyn Reader, group: u64, value_bytes: usize) -> Result<(), BenchError> {
    let (mut members, mut is_right) = (0_u64, true);
    reader.scan(&prefix_of(group), &mut |key, value| {
        let number = number_of(value).unwrap_or(u64::MAX);
        let member = 1 << (number % GROUP_ITEMS);
        is_right &= number / GROUP_ITEMS == group
            && members & member == 0
            && key == group_key(number)
            && is_value(value, number, value_bytes);
        members |= member;
    })?;
    if is_right && members == (1 << GROUP_ITEMS) - 1 {
        return Ok(());
    }
    Err(BenchError::WrongAnswer(format!("group {group}: its items are not those that were put")))
}

/// Requests of threads for items that exist, all alike.
#[derive(Clone, Copy)]
pub struct UniformGets {
    pub items: u64,
    pub value_bytes: usize,
    pub is_lent: bool,
}

impl UniformGets {
    /// One of them.
    ///
    /// # Errors
    /// As [`get_present`].
    pub fn get(&self, reader: &mut dyn Reader, number: u64) -> Result<(), BenchError> {
        get_present(reader, (number, key_of(number)), self.value_bytes, self.is_lent)
    }

    /// The requests of a thread in a round.
    pub fn step<'a>(self, seed: u64, thread: usize) -> Step<'a> {
        let mut random = Random::new(seed, thread as u64);
        Box::new(move |reader| self.get(reader, random.below(self.items)))
    }
}
