//! # Batches of writes under conditions
//!
//! The writes of a batch, also of several keyspaces, take effect together or not at all. Conditions are checked against
//! the state before the batch: with the version that alluvium_get_version returned, a batch is a transaction.

use std::ffi::c_void;

use alluvium::{Batch, Condition, ItemVersion, Keyspace};

use crate::database::{OpenDb, alluvium_db};
use crate::error::{alluvium_error, alluvium_status};
use crate::failure::Failure;
use crate::item::metadata;
use crate::keyspace::alluvium_keyspace;
use crate::living::Living;
use crate::raw::{self, Given, done};

/// Writes of one database. One thread uses it at a time.
#[derive(Debug)]
pub struct alluvium_batch {
    of: Living<Writes>,
}

#[derive(Debug)]
struct Writes {
    of: OpenDb,
    batch: Batch,
}

impl alluvium_batch {
    /// The batch, and a keyspace of the same database.
    fn with<'a>(&mut self, keyspace: &'a alluvium_keyspace) -> Result<(&mut Batch, &'a Keyspace), Failure> {
        let (writes, stored) = (self.of.get_mut()?, keyspace.stored()?);
        if stored.of.number != writes.of.number {
            return Err(Failure::argument("the keyspace belongs to another database"));
        }
        Ok((&mut writes.batch, &stored.keyspace))
    }
}

/// An empty batch. The caller frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_batch_create(
    db: *const alluvium_db,
    batch: *mut *mut alluvium_batch,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(batch, "batch")?;
        let of = given.handle(db, "db")?.open()?.clone();
        let batch = of.db.batch();
        out.set_handle(alluvium_batch { of: Living::new(Writes { of, batch }) });
        done()
    })
}

/// Frees a batch. What was not committed is forgotten. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_batch_free(batch: *mut alluvium_batch) {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { raw::free(batch) };
}

/// Adds an item to store, with flags and an expiry that may be 0. The batch has a copy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_batch_put(
    batch: *mut alluvium_batch,
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
        let batch = given.handle_mut(batch, "batch")?;
        let (writes, keyspace) = batch.with(given.handle(keyspace, "keyspace")?)?;
        let (key, value) = (given.key(key, key_len)?, given.value(value, value_len)?);
        writes.insert_with(keyspace, key, value, metadata(flags, expires_at_ms));
        done()
    })
}

/// Adds a key to remove, whether or not it is present.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_batch_remove(
    batch: *mut alluvium_batch,
    keyspace: *const alluvium_keyspace,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let batch = given.handle_mut(batch, "batch")?;
        let (writes, keyspace) = batch.with(given.handle(keyspace, "keyspace")?)?;
        writes.remove(keyspace, given.key(key, key_len)?);
        done()
    })
}

/// Adds a condition.
///
/// # Safety
/// As for [`Given::by_caller`].
unsafe fn require(
    batch: *mut alluvium_batch,
    keyspace: *const alluvium_keyspace,
    (key, key_len): (*const c_void, usize),
    condition: impl FnOnce(&Given) -> Result<Condition, Failure>,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller promises it.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let batch = given.handle_mut(batch, "batch")?;
        let (writes, keyspace) = batch.with(given.handle(keyspace, "keyspace")?)?;
        writes.require(keyspace, given.key(key, key_len)?, condition(given)?);
        done()
    })
}

/// Demands that the key has no item.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_batch_require_absent(
    batch: *mut alluvium_batch,
    keyspace: *const alluvium_keyspace,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { require(batch, keyspace, (key, key_len), |_| Ok(Condition::Absent), error) }
}

/// Demands that the key has an item.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_batch_require_present(
    batch: *mut alluvium_batch,
    keyspace: *const alluvium_keyspace,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { require(batch, keyspace, (key, key_len), |_| Ok(Condition::Present), error) }
}

/// Demands that the key has this value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_batch_require_value(
    batch: *mut alluvium_batch,
    keyspace: *const alluvium_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    let condition = |given: &Given| Ok(Condition::Value(given.value(value, value_len)?.to_vec()));
    // SAFETY: the caller keeps the contract of the header.
    unsafe { require(batch, keyspace, (key, key_len), condition, error) }
}

/// Demands that the item of the key, or its absence, is as when alluvium_get_version returned this version of 32 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_batch_require_unchanged(
    batch: *mut alluvium_batch,
    keyspace: *const alluvium_keyspace,
    key: *const c_void,
    key_len: usize,
    version: *const u8,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    let condition = |given: &Given| {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(given.slice(version, 32, "version")?);
        Ok(Condition::Unchanged(ItemVersion::from_bytes(bytes)))
    };
    // SAFETY: the caller keeps the contract of the header.
    unsafe { require(batch, keyspace, (key, key_len), condition, error) }
}

/// Number of writes in a batch; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_batch_count(batch: *const alluvium_batch) -> usize {
    // SAFETY: the caller keeps the contract of the header.
    let batch = unsafe { raw::peek(batch) };
    batch.and_then(|batch| batch.of.get().ok()).map_or(0, |writes| writes.batch.len())
}

/// Performs the writes if all conditions hold; else writes nothing and returns ALLUVIUM_CONDITION. In both cases, and
/// after any other error, the batch is empty afterwards and can be used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_batch_commit(
    batch: *mut alluvium_batch,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let writes = given.handle_mut(batch, "batch")?.of.get_mut()?;
        let empty = writes.of.db.batch();
        std::mem::replace(&mut writes.batch, empty).commit()?;
        done()
    })
}
