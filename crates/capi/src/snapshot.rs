//! # Snapshots
//!
//! A snapshot shows all keyspaces as they were at one moment. It keeps the tables of that moment until it is freed.

use std::ffi::c_char;

use alluvium::Snapshot;

use crate::database::alluvium_db;
use crate::error::{alluvium_error, alluvium_status};
use crate::item::absent;
use crate::keyspace::alluvium_keyspace;
use crate::living::Living;
use crate::raw::{self, Given, done};

/// A snapshot. Many threads may use it.
#[derive(Debug)]
pub struct alluvium_snapshot {
    of: Living<Snapshot>,
}

/// A snapshot of all keyspaces as they are now. The caller frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_snapshot_create(
    db: *const alluvium_db,
    snapshot: *mut *mut alluvium_snapshot,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(snapshot, "snapshot")?;
        let taken = given.handle(db, "db")?.open()?.db.snapshot()?;
        out.set_handle(alluvium_snapshot { of: Living::new(taken) });
        done()
    })
}

/// Frees a snapshot. Keyspaces of it that are in use stay. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_snapshot_free(snapshot: *mut alluvium_snapshot) {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { raw::free(snapshot) };
}

/// A keyspace of a snapshot, for all functions that read one; those that write return ALLUVIUM_READ_ONLY.
/// ALLUVIUM_ABSENT if there was none of this name. The caller frees it by alluvium_keyspace_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_snapshot_keyspace(
    snapshot: *const alluvium_snapshot,
    name: *const c_char,
    keyspace: *mut *mut alluvium_keyspace,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(keyspace, "keyspace")?;
        let snapshot = given.handle(snapshot, "snapshot")?.of.get()?;
        let name = given.text(name, "name")?;
        let Some(keyspace) = snapshot.keyspace(name) else { return absent() };
        out.set_handle(alluvium_keyspace::of_snapshot(keyspace, name));
        done()
    })
}

/// When a snapshot was taken, in milliseconds since 1970; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_snapshot_taken_at_ms(snapshot: *const alluvium_snapshot) -> u64 {
    // SAFETY: the caller keeps the contract of the header.
    let snapshot = unsafe { raw::peek(snapshot) };
    snapshot.and_then(|snapshot| snapshot.of.get().ok()).map_or(0, Snapshot::taken_at_ms)
}
