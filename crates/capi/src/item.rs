//! # Single items
//!
//! A get costs at most one read of a page, and none of a fresh item or one that was read recently. A put waits until
//! it is as durable as the settings demand; where that takes long, alluvium_put_many waits once for many. An item can
//! expire: `expires_at_ms` is a time in milliseconds since 1970, or 0 for never. Flags mean nothing to the library.

use std::ffi::c_void;

use alluvium::{Metadata, Update};

use crate::allocation;
use crate::error::{alluvium_error, alluvium_status};
use crate::failure::Failure;
use crate::keyspace::{Source, alluvium_keyspace, either};
use crate::raw::{Given, Outcome, done};

/// The outcome of a call that found nothing.
pub(crate) fn absent() -> Outcome {
    Ok(alluvium_status::ALLUVIUM_ABSENT)
}

/// What is stored with a value, as C gives it.
pub(crate) fn metadata(flags: u32, expires_at_ms: u64) -> Metadata {
    Metadata { flags, expires_at_ms: (expires_at_ms != 0).then_some(expires_at_ms) }
}

/// The value of `key` passed to `take`.
fn get<R>(
    source: &Source,
    key: &[u8],
    take: impl FnOnce(&[u8]) -> Result<R, Failure>,
) -> Result<Option<R>, Failure> {
    match source {
        Source::Database(stored) => stored.keyspace.get_with(key, take)?.transpose(),
        Source::Snapshot(keyspace) => keyspace.get(key)?.as_deref().map(take).transpose(),
    }
}

/// Stores an item for good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_put(
    keyspace: *const alluvium_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let stored = given.handle(keyspace, "keyspace")?.stored()?;
        stored.keyspace.insert(given.key(key, key_len)?, given.value(value, value_len)?)?;
        done()
    })
}

/// Stores an item with flags and an expiry. Each costs a few bytes if it is not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_put_with(
    keyspace: *const alluvium_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    flags: u32,
    expires_at_ms: u64,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let stored = given.handle(keyspace, "keyspace")?.stored()?;
        let (key, value) = (given.key(key, key_len)?, given.value(value, value_len)?);
        stored.keyspace.insert_with(key, value, metadata(flags, expires_at_ms))?;
        done()
    })
}

/// The value of a key, in memory that the caller frees by alluvium_free, and its length; ALLUVIUM_ABSENT and NULL if
/// there is none. An empty value is not NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_get(
    keyspace: *const alluvium_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut c_void,
    value_len: *mut usize,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let (out, out_len) = (given.pointer_out(value, "value")?, given.out(value_len, "value_len")?);
        let source = given.handle(keyspace, "keyspace")?.source()?;
        let copy = |value: &[u8]| Ok((allocation::copied(value)?, value.len()));
        let found = get(source, given.key(key, key_len)?, copy)?;
        let Some((value, len)) = found else { return absent() };
        out.set(value);
        out_len.set(len);
        done()
    })
}

/// Copies the value of a key into a buffer, without an allocation. `*value_len` becomes the length of the value;
/// ALLUVIUM_SMALL and no copy if that is more than `capacity`. The buffer may be NULL if its capacity is 0: to ask for
/// the length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_get_into(
    keyspace: *const alluvium_keyspace,
    key: *const c_void,
    key_len: usize,
    buffer: *mut c_void,
    capacity: usize,
    value_len: *mut usize,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out_len = given.out(value_len, "value_len")?;
        let source = given.handle(keyspace, "keyspace")?.source()?;
        let copy = |value: &[u8]| Ok((given.fill(buffer, capacity, value)?, value.len()));
        let Some((fits, len)) = get(source, given.key(key, key_len)?, copy)? else { return absent() };
        out_len.set(len);
        if fits { done() } else { Ok(alluvium_status::ALLUVIUM_SMALL) }
    })
}

/// The value of a key as by alluvium_get, its flags and its expiry (0 for never). Both addresses may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_get_with(
    keyspace: *const alluvium_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut c_void,
    value_len: *mut usize,
    flags: *mut u32,
    expires_at_ms: *mut u64,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let (out, out_len) = (given.pointer_out(value, "value")?, given.out(value_len, "value_len")?);
        let source = given.handle(keyspace, "keyspace")?.source()?;
        let key = given.key(key, key_len)?;
        let found = either!(source, keyspace => keyspace.get_with_metadata(key))?;
        let Some((value, metadata)) = found else { return absent() };
        out.set(allocation::copied(&value)?);
        out_len.set(value.len());
        given.out_or_none(flags).into_iter().for_each(|out| out.set(metadata.flags));
        let expires_at = metadata.expires_at_ms.unwrap_or(0);
        given.out_or_none(expires_at_ms).into_iter().for_each(|out| out.set(expires_at));
        done()
    })
}

/// The value of a key as by alluvium_get, and its version: 32 bytes that stand for value, flags and expiry, or for the
/// absence of the item. They are stored at `version` in both cases, for alluvium_batch_require_unchanged. Not for
/// keyspaces of snapshots.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_get_version(
    keyspace: *const alluvium_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut c_void,
    value_len: *mut usize,
    version: *mut u8,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let (out, out_len) = (given.pointer_out(value, "value")?, given.out(value_len, "value_len")?);
        let version: *mut [u8; 32] = version.cast();
        let out_version = given.out(version, "version")?;
        let stored = given.handle(keyspace, "keyspace")?.stored()?;
        let found = stored.keyspace.get_with_version(given.key(key, key_len)?)?;
        out_version.set(found.version.to_bytes());
        let Some((value, _)) = found.item else { return absent() };
        out.set(allocation::copied(&value)?);
        out_len.set(value.len());
        done()
    })
}

/// ALLUVIUM_OK if there is an item of this key, ALLUVIUM_ABSENT if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_contains(
    keyspace: *const alluvium_keyspace,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let source = given.handle(keyspace, "keyspace")?.source()?;
        let key = given.key(key, key_len)?;
        if either!(source, keyspace => keyspace.contains_key(key))? { done() } else { absent() }
    })
}

/// Removes a key, whether or not it is present. Reads nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_remove(
    keyspace: *const alluvium_keyspace,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let stored = given.handle(keyspace, "keyspace")?.stored()?;
        stored.keyspace.remove(given.key(key, key_len)?)?;
        done()
    })
}

/// Removes a key and returns the value that it had as by alluvium_get; ALLUVIUM_ABSENT if there was none. Atomic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_take(
    keyspace: *const alluvium_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut c_void,
    value_len: *mut usize,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let (out, out_len) = (given.pointer_out(value, "value")?, given.out(value_len, "value_len")?);
        let stored = given.handle(keyspace, "keyspace")?.stored()?;
        let found = stored.keyspace.update(given.key(key, key_len)?, |_| Update::Remove)?;
        let Some(value) = found else { return absent() };
        out.set(allocation::copied(&value)?);
        out_len.set(value.len());
        done()
    })
}

/// Stores `value` if the key has the value `expected`, and says whether it did. A NULL of length 0 stands for no item:
/// as `expected`, that there must be none; as `value`, that the key is removed. Atomic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_compare_and_swap(
    keyspace: *const alluvium_keyspace,
    key: *const c_void,
    key_len: usize,
    expected: *const c_void,
    expected_len: usize,
    value: *const c_void,
    value_len: usize,
    swapped: *mut bool,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.out(swapped, "swapped")?;
        let stored = given.handle(keyspace, "keyspace")?.stored()?;
        let expected = given.value_or_none(expected, expected_len)?;
        let value = given.value_or_none(value, value_len)?;
        out.set(stored.keyspace.compare_and_swap(given.key(key, key_len)?, expected, value)?);
        done()
    })
}

/// Adds `by` to the number under a key, 8 bytes with the lowest first, and returns the sum, for which the address may
/// be NULL. An absent key counts as 0. Atomic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_increment(
    keyspace: *const alluvium_keyspace,
    key: *const c_void,
    key_len: usize,
    by: i64,
    sum: *mut i64,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let stored = given.handle(keyspace, "keyspace")?.stored()?;
        let result = stored.keyspace.increment(given.key(key, key_len)?, by)?;
        given.out_or_none(sum).into_iter().for_each(|out| out.set(result));
        done()
    })
}

/// Appends bytes to the value of a key and returns its new length, for which the address may be NULL. An absent key
/// counts as empty. Atomic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_append(
    keyspace: *const alluvium_keyspace,
    key: *const c_void,
    key_len: usize,
    bytes: *const c_void,
    len: usize,
    value_len: *mut usize,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let stored = given.handle(keyspace, "keyspace")?.stored()?;
        let new_len = stored.keyspace.append(given.key(key, key_len)?, given.value(bytes, len)?)?;
        given.out_or_none(value_len).into_iter().for_each(|out| out.set(new_len));
        done()
    })
}

/// Gives an item another expiry, or none for 0; ALLUVIUM_ABSENT if there is no item. Atomic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_touch(
    keyspace: *const alluvium_keyspace,
    key: *const c_void,
    key_len: usize,
    expires_at_ms: u64,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let stored = given.handle(keyspace, "keyspace")?.stored()?;
        let change = |before: Option<(&[u8], Metadata)>| match before {
            Some((value, Metadata { flags, .. })) => {
                Update::InsertWith(value.to_vec(), metadata(flags, expires_at_ms))
            }
            None => Update::Keep,
        };
        let found = stored.keyspace.update_with_metadata(given.key(key, key_len)?, change)?;
        if found.is_some() { done() } else { absent() }
    })
}
