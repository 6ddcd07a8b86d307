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

    /// Writes the key of item `number` at index `at`: a bijection of the number, in the last eight bytes.
    #[inline(always)]
    pub fn set(&mut self, at: usize, number: u64) {
        let end = (at + 1) * self.key_bytes;
        self.bytes[end - 8..end].copy_from_slice(&mix(number).to_le_bytes());
    }

    /// The key at index `at`.
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
        Self { bytes: vec![0; value_bytes] }
    }

    /// The value of item `number`: the number repeated, so that no byte of another value is accepted.
    #[inline(always)]
    pub fn of(&mut self, number: u64) -> &[u8] {
        let number = number.to_le_bytes();
        let (words, rest) = self.bytes.as_chunks_mut();
        words.fill(number);
        rest.copy_from_slice(&number[..rest.len()]);
        &self.bytes
    }

    /// The value that was made last.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Whether `value` is that of item `number`, in every byte.
#[inline(always)]
pub fn is_value(value: &[u8], number: u64) -> bool {
    match <[u8; 8]>::try_from(value) {
        Ok(only) => u64::from_le_bytes(only) == number,
        Err(_) => is_long_value(value, number),
    }
}

#[inline(never)]
fn is_long_value(value: &[u8], number: u64) -> bool {
    let (words, rest) = value.as_chunks();
    // No early exit from the loop, so that it is vectorized.
    let difference =
        words.iter().fold(0, |difference, word| difference | (u64::from_le_bytes(*word) ^ number));
    difference == 0 && !words.is_empty() && *rest == number.to_le_bytes()[..rest.len()]
}

/// The error for a value that is not the item's.
#[cold]
pub fn wrong(number: u64) -> BenchError {
    BenchError::WrongAnswer(format!("item {number} was found with the value of another item"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_value_counts() {
        for len in [8, 9, 15, 16, 64, 100, 1024] {
            let mut value = Value::new(len);
            let mut bytes = value.of(77).to_vec();
            assert!(is_value(&bytes, 77) && !is_value(&bytes, 78), "{len} bytes");
            for at in 0..len {
                bytes[at] ^= 1;
                assert!(!is_value(&bytes, 77), "byte {at} of {len}");
                bytes[at] ^= 1;
            }
        }
        assert!(!is_value(&[], 0) && !is_value(&[0; 7], 0));
    }
}
