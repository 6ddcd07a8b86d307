//! # Many items in one call
//!
//! The reads of a call are in flight together, and its writes wait once. So one thread that asks for a hundred items
//! at a time is as fast as many threads that ask for one. A call from Go costs as much as some gets of fresh items,
//! which batches make cheap, too.
//!
//! Keys and values are given in one of two forms: by addresses and lengths, or flat. Flat means all bytes one after
//! the other, and `count` + 1 offsets: part number i is from offsets[i] to offsets[i + 1]. A flat argument contains no
//! pointers, as cgo demands. It is also how Arrow stores columns.

use std::ffi::c_void;

use alluvium::{Keyspace, Metadata};

use crate::allocation;
use crate::error::{alluvium_error, alluvium_status};
use crate::failure::Failure;
use crate::item::metadata;
use crate::keyspace::{Source, Stored, alluvium_keyspace, either};
use crate::raw::{self, Given, done};

/// The values of many keys, in the order of the keys, in one block of memory that alluvium_values_free frees.
#[repr(C)]
#[derive(Debug)]
pub struct alluvium_values {
    /// Number of keys that were asked for.
    pub count: usize,
    /// `count` + 1 positions in `bytes`: value number i is from offsets[i] to offsets[i + 1].
    pub offsets: *const u64,
    /// `count` bytes: 1 for a key that has a value, which may be empty, 0 for one that has none.
    pub presence: *const u8,
    /// The values.
    pub bytes: *const c_void,
}

/// Frees the memory of values and empties the struct, so that it may be freed again. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_values_free(values: *mut alluvium_values) {
    // SAFETY: the caller keeps the contract of the header.
    let Some(values) = (unsafe { raw::peek_mut(values) }) else { return };
    // SAFETY: the offsets are at the beginning of the block, which was given to the caller.
    unsafe { allocation::free(values.offsets.cast_mut().cast()) };
    *values = alluvium_values::default();
}

impl Default for alluvium_values {
    fn default() -> Self {
        Self { count: 0, offsets: std::ptr::null(), presence: std::ptr::null(), bytes: std::ptr::null() }
    }
}

fn found_many(source: &Source, keys: &[&[u8]]) -> Result<alluvium_values, Failure> {
    alluvium_values::of(&either!(source, keyspace => keyspace.multi_get(keys))?)
}

/// The values of `count` keys, given by addresses and lengths. `*values` is filled; the caller frees its memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_get_many(
    keyspace: *const alluvium_keyspace,
    count: usize,
    keys: *const *const c_void,
    key_lens: *const usize,
    values: *mut alluvium_values,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.struct_out(values, "values")?;
        let source = given.handle(keyspace, "keyspace")?.source()?;
        out.set(found_many(source, &given.pointed(count, keys, key_lens, "keys")?)?);
        done()
    })
}

/// The values of `count` keys, given flat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_get_many_flat(
    keyspace: *const alluvium_keyspace,
    count: usize,
    keys: *const c_void,
    key_offsets: *const u64,
    values: *mut alluvium_values,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.struct_out(values, "values")?;
        let source = given.handle(keyspace, "keyspace")?.source()?;
        out.set(found_many(source, &given.flat(count, keys, key_offsets, "keys")?)?);
        done()
    })
}

/// Whether each of `count` keys, given flat, is present: 1 or 0 in each of `count` bytes at `presence`. Not for
/// keyspaces of snapshots.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_contains_many_flat(
    keyspace: *const alluvium_keyspace,
    count: usize,
    keys: *const c_void,
    key_offsets: *const u64,
    presence: *mut u8,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let stored = given.handle(keyspace, "keyspace")?.stored()?;
        let found = stored.keyspace.multi_get_short(&given.flat(count, keys, key_offsets, "keys")?, 0)?;
        let found: Vec<u8> = found.iter().map(|value| value.is_some().into()).collect();
        given.fill(presence.cast(), count, &found)?;
        done()
    })
}

/// Stores items: together, or one after the other with one wait at the end.
fn put_many(
    stored: &Stored,
    keys: &[&[u8]],
    values: &[&[u8]],
    metadata: Metadata,
    atomic: bool,
) -> alluvium::Result<()> {
    let (db, items) = (&stored.of.db, keys.iter().zip(values));
    if atomic {
        let mut batch = db.batch();
        items.for_each(|(&key, &value)| batch.insert_with(&stored.keyspace, key, value, metadata));
        return batch.commit();
    }
    let deferred: &Keyspace = stored.deferred()?;
    for (key, value) in items {
        deferred.insert_with(key, value, metadata)?;
    }
    db.commit()
}

/// Stores `count` items, given by addresses and lengths. With `atomic`, all of them take effect together or none does;
/// else an error or a crash may leave some of them stored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_put_many(
    keyspace: *const alluvium_keyspace,
    count: usize,
    keys: *const *const c_void,
    key_lens: *const usize,
    values: *const *const c_void,
    value_lens: *const usize,
    atomic: bool,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let stored = given.handle(keyspace, "keyspace")?.stored()?;
        let keys = given.pointed(count, keys, key_lens, "keys")?;
        let values = given.pointed(count, values, value_lens, "values")?;
        put_many(stored, &keys, &values, Metadata::default(), atomic)?;
        done()
    })
}

/// Stores `count` items, given flat, with the same flags and expiry, which may be 0. `atomic` as above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_put_many_flat(
    keyspace: *const alluvium_keyspace,
    count: usize,
    keys: *const c_void,
    key_offsets: *const u64,
    values: *const c_void,
    value_offsets: *const u64,
    flags: u32,
    expires_at_ms: u64,
    atomic: bool,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let stored = given.handle(keyspace, "keyspace")?.stored()?;
        let keys = given.flat(count, keys, key_offsets, "keys")?;
        let values = given.flat(count, values, value_offsets, "values")?;
        put_many(stored, &keys, &values, metadata(flags, expires_at_ms), atomic)?;
        done()
    })
}

/// Removes `count` keys, given flat, whether or not they are present. `atomic` as above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_remove_many_flat(
    keyspace: *const alluvium_keyspace,
    count: usize,
    keys: *const c_void,
    key_offsets: *const u64,
    atomic: bool,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let stored = given.handle(keyspace, "keyspace")?.stored()?;
        let (db, keys) = (&stored.of.db, given.flat(count, keys, key_offsets, "keys")?);
        if atomic {
            let mut batch = db.batch();
            keys.iter().for_each(|&key| batch.remove(&stored.keyspace, key));
            batch.commit()?;
        } else {
            let deferred = stored.deferred()?;
            keys.iter().try_for_each(|key| deferred.remove(key))?;
            db.commit()?;
        }
        done()
    })
}
