//! Keys and values by item number, cheap to make and to check.

use crate::error::BenchError;
use crate::random::mix;

/// Makes keys of one length in one buffer.
#[derive(Debug)]
pub struct Keys {
    bytes: Vec<u8>,
    key_bytes: usize,
}

impl Keys {
    /// Room for `count` keys.
    pub fn new(count: usize, key_bytes: usize) -> Self {
        Self { bytes: vec![b'k'; count * key_bytes], key_bytes }
    }

    /// Writes the key of item `number` into place `at`: a bijection of the number in the last eight bytes.
    #[inline(always)]
    pub fn set(&mut self, at: usize, number: u64) {
        let end = (at + 1) * self.key_bytes;
        self.bytes[end - 8..end].copy_from_slice(&mix(number).to_le_bytes());
    }

    /// The key in place `at`.
    #[inline(always)]
    pub fn get(&self, at: usize) -> &[u8] {
        &self.bytes[at * self.key_bytes..(at + 1) * self.key_bytes]
    }
}

/// The value of one item after another, in one buffer.
#[derive(Debug)]
pub struct Value {
    bytes: Vec<u8>,
}

impl Value {
    /// Room for a value.
    pub fn new(value_bytes: usize) -> Self {
        Self { bytes: vec![b'v'; value_bytes] }
    }

    /// The value of item `number`: the number at both ends.
    #[inline(always)]
    pub fn of(&mut self, number: u64) -> &[u8] {
        let end = self.bytes.len();
        self.bytes[end - 8..].copy_from_slice(&number.to_le_bytes());
        self.bytes[..8].copy_from_slice(&number.to_le_bytes());
        &self.bytes
    }

    /// The value made last.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Whether `value` is that of item `number`, as its ends say.
#[inline(always)]
pub fn is_value(value: &[u8], number: u64) -> bool {
    value.len() >= 8 && value[..8] == number.to_le_bytes() && value[value.len() - 8..] == number.to_le_bytes()
}

/// The error for a value that is not the item's.
#[cold]
pub fn wrong(number: u64) -> BenchError {
    BenchError::WrongAnswer(format!("item {number} was found with a value that is not its own"))
}
