//! # Bulk loads
//!
//! Items that are added to a bulk load, in any order, go straight to tables, at a fraction of the cost of puts. They
//! are visible when the load is finished.

use std::ffi::c_void;

use alluvium::Ingest;

use crate::error::{alluvium_error, alluvium_status};
use crate::failure::Failure;
use crate::item::metadata;
use crate::keyspace::alluvium_keyspace;
use crate::living::Living;
use crate::raw::{self, Given, done};

/// A bulk load into a keyspace. One thread uses it at a time.
#[derive(Debug)]
pub struct alluvium_ingest {
    /// `None` once it was finished.
    of: Living<Option<Ingest>>,
}

impl alluvium_ingest {
    fn load(&mut self) -> Result<&mut Ingest, Failure> {
        self.of.get_mut()?.as_mut().ok_or_else(|| Failure::closed("the bulk load"))
    }
}

/// Begins a bulk load. The caller frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_ingest_create(
    keyspace: *const alluvium_keyspace,
    ingest: *mut *mut alluvium_ingest,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(ingest, "ingest")?;
        let load = given.handle(keyspace, "keyspace")?.stored()?.keyspace.ingest()?;
        out.set_handle(alluvium_ingest { of: Living::new(Some(load)) });
        done()
    })
}

/// Frees a bulk load. One that was not finished is given up, and nothing of it is stored. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_ingest_free(ingest: *mut alluvium_ingest) {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { raw::free(ingest) };
}

/// Adds an item, with flags and an expiry that may be 0. It replaces one that was added under the same key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_ingest_put(
    ingest: *mut alluvium_ingest,
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
        let load = given.handle_mut(ingest, "ingest")?.load()?;
        let (key, value) = (given.key(key, key_len)?, given.value(value, value_len)?);
        load.insert_with(key, value, metadata(flags, expires_at_ms))?;
        done()
    })
}

/// Adds `count` items, given flat as in alluvium_put_many_flat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_ingest_put_many_flat(
    ingest: *mut alluvium_ingest,
    count: usize,
    keys: *const c_void,
    key_offsets: *const u64,
    values: *const c_void,
    value_offsets: *const u64,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let load = given.handle_mut(ingest, "ingest")?.load()?;
        let keys = given.flat(count, keys, key_offsets, "keys")?;
        let values = given.flat(count, values, value_offsets, "values")?;
        keys.iter().zip(&values).try_for_each(|(key, value)| load.insert(key, value))?;
        done()
    })
}

/// Makes the items visible, durably. The number of items that were added is stored at `items`, which may be NULL.
/// After an error some items are visible and others are not: loading the same again completes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_ingest_finish(
    ingest: *mut alluvium_ingest,
    items: *mut u64,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let load = given.handle_mut(ingest, "ingest")?.of.get_mut()?.take();
        let ingested = load.ok_or_else(|| Failure::closed("the bulk load"))?.finish()?;
        given.out_or_none(items).into_iter().for_each(|out| out.set(ingested.items));
        done()
    })
}
