//! What the compared caches share.

use std::sync::Arc;

use alluvium_bench::BenchError;
use alluvium_bench::cache::items::{Keys, Value, is_value, wrong};
use alluvium_bench::cache::options::Case;
use alluvium_bench::cache::requests::IS_SET;

/// A cache under comparison.
pub trait Subject: Sync {
    /// Its name in results.
    fn name(&self) -> &'static str;

    /// Gives `key` a value.
    fn set(&self, key: &[u8], value: &[u8]);

    /// The result of `look` for the value of `key`.
    fn get(&self, key: &[u8], look: impl Fn(&[u8]) -> bool) -> Option<bool>;
}

/// A value in the form in which the other caches store it.
pub trait Stored: Clone + Send + Sync + 'static {
    /// Copies a value into this form.
    fn of(value: &[u8]) -> Self;
    /// The value.
    fn bytes(&self) -> &[u8];
}

impl<const LEN: usize> Stored for [u8; LEN] {
    fn of(value: &[u8]) -> Self {
        value.try_into().expect("values of this length")
    }

    fn bytes(&self) -> &[u8] {
        self
    }
}

impl Stored for Arc<[u8]> {
    fn of(value: &[u8]) -> Self {
        value.into()
    }

    fn bytes(&self) -> &[u8] {
        self
    }
}

/// Sets all items.
pub fn load(subject: &impl Subject, case: &Case) {
    let mut keys = Keys::new(1, case.key_bytes);
    let mut value = Value::new(case.value_bytes);
    for number in 0..case.items {
        keys.set(0, number);
        subject.set(keys.get(0), value.of(number));
    }
}

/// Performs requests one at a time and verifies every value. Returns the number of gets that found nothing.
///
/// # Errors
/// [`BenchError::WrongAnswer`].
pub fn work(subject: &impl Subject, case: &Case, requests: &[u32]) -> Result<u64, BenchError> {
    let mut keys = Keys::new(1, case.key_bytes);
    let mut value = Value::new(case.value_bytes);
    let mut misses = 0;
    for &request in requests {
        let number = u64::from(request & !IS_SET);
        keys.set(0, number);
        if request & IS_SET != 0 {
            subject.set(keys.get(0), value.of(number));
            continue;
        }
        match subject.get(keys.get(0), |value| is_value(value, number)) {
            Some(true) => {}
            Some(false) => return Err(wrong(number)),
            None => misses += 1,
        }
    }
    Ok(misses)
}
