//! # Updates of caches
//!
//! Each looks at the item of a key and writes it with no other write in between.

use std::ffi::c_void;

use ::alluvium_cache::Outcome as Done;

use crate::cache::{alluvium_cache, either_form, extras};
use crate::error::{alluvium_error, alluvium_status};
use crate::item::absent;
use crate::raw::{Given, Outcome, done};

/// The outcome of a write under a condition.
fn outcome(outcome: Done) -> Outcome {
    if outcome == Done::Done { done() } else { absent() }
}

/// Stores an item unless the key has one; then it returns ALLUVIUM_ABSENT and stores nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_add(
    cache: *const alluvium_cache,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    flags: u32,
    ttl_ms: u64,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let (cache, key) = (given.cache(cache)?, given.key(key, key_len)?);
        let value = given.value(value, value_len)?;
        outcome(either_form!(cache, cache => cache.add(key, value, extras(ttl_ms, flags)))?)
    })
}

/// Stores an item if the key has one; else it returns ALLUVIUM_ABSENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_replace(
    cache: *const alluvium_cache,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    flags: u32,
    ttl_ms: u64,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let (cache, key) = (given.cache(cache)?, given.key(key, key_len)?);
        let value = given.value(value, value_len)?;
        outcome(either_form!(cache, cache => cache.replace(key, value, extras(ttl_ms, flags)))?)
    })
}

/// Stores `value` if the key has the value `expected`; else it returns ALLUVIUM_ABSENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_compare_and_swap(
    cache: *const alluvium_cache,
    key: *const c_void,
    key_len: usize,
    expected: *const c_void,
    expected_len: usize,
    value: *const c_void,
    value_len: usize,
    flags: u32,
    ttl_ms: u64,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let (cache, key) = (given.cache(cache)?, given.key(key, key_len)?);
        let (expected, value) = (given.value(expected, expected_len)?, given.value(value, value_len)?);
        let extras = extras(ttl_ms, flags);
        outcome(either_form!(cache, cache => cache.compare_and_swap(key, expected, value, extras))?)
    })
}

/// Adds `by` to the decimal number under a key, and returns the sum, for which the address may be NULL. An absent key
/// counts as 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_increment(
    cache: *const alluvium_cache,
    key: *const c_void,
    key_len: usize,
    by: i64,
    sum: *mut i64,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let (cache, key) = (given.cache(cache)?, given.key(key, key_len)?);
        let result = either_form!(cache, cache => cache.increment(key, by, Some(0)))?;
        given.out_or_none(sum).into_iter().for_each(|out| out.set(result.unwrap_or(by)));
        done()
    })
}

/// Lets an item expire after `ttl_ms`, or never for 0; ALLUVIUM_ABSENT if there is no item.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_touch(
    cache: *const alluvium_cache,
    key: *const c_void,
    key_len: usize,
    ttl_ms: u64,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let (cache, key) = (given.cache(cache)?, given.key(key, key_len)?);
        let left = extras(ttl_ms, 0).time_to_live;
        if either_form!(cache, cache => cache.touch(key, left))? { done() } else { absent() }
    })
}
