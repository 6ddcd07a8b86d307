//! # Databases
//!
//! A database is a directory, which one handle in one process has open at a time.

use std::ffi::c_char;
use std::sync::atomic::{AtomicU64, Ordering};

use alluvium::{Db, Health};

use crate::allocation;
use crate::error::{alluvium_error, alluvium_status};
use crate::failure::Failure;
use crate::living::Living;
use crate::options::alluvium_options;
use crate::raw::{self, Given, done};
use crate::settings::Settings;

/// An open database. Many threads may use it.
#[derive(Debug)]
pub struct alluvium_db {
    of: Living<OpenDb>,
}

/// A database with a number of its own, so that handles of two databases are not mixed up.
#[derive(Debug, Clone)]
pub(crate) struct OpenDb {
    /// The database.
    pub db: Db,
    /// Its number.
    pub number: u64,
}

impl alluvium_db {
    fn new(db: Db) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Self { of: Living::new(OpenDb { db, number: NUMBERS.fetch_add(1, Ordering::Relaxed) }) }
    }

    /// The engine's database.
    pub(crate) fn open(&self) -> Result<&OpenDb, Failure> {
        self.of.get()
    }
}

impl Drop for alluvium_db {
    /// Closes it, so that the directory is free even if handles that were made from it are not. What a failed close
    /// did not make durable is found in the log by the next opening.
    fn drop(&mut self) {
        if let Ok(OpenDb { db, .. }) = self.of.get() {
            let _ = close(db);
        }
    }
}

fn close(db: &Db) -> Result<(), Failure> {
    if matches!(db.health(), Health::Closed) {
        return Ok(());
    }
    Ok(db.clone().close()?)
}

/// Opens the database in the directory `path`, and creates it if there is none. `options` may be NULL for defaults.
/// The caller closes `*db` and frees it. Opening takes as long as reading the log does.
///
/// Errors: ALLUVIUM_LOCKED, ALLUVIUM_DAMAGED, ALLUVIUM_NOT_A_DATABASE, ALLUVIUM_FORMAT, ALLUVIUM_SETTINGS, ALLUVIUM_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_open(
    path: *const c_char,
    options: *const alluvium_options,
    db: *mut *mut alluvium_db,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(db, "db")?;
        let path = given.path(path, "path")?.to_owned();
        let defaults = Settings::default();
        let settings = given.handle_or_none(options).map_or(&defaults, |options| &options.settings);
        out.set_handle(alluvium_db::new(settings.database(path)?.open()?));
        done()
    })
}

/// Closes the database: makes all writes durable and releases the directory. The handle, and all that was made from
/// it, stay until they are freed; calls with them return ALLUVIUM_CLOSED. Closing again does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_close(
    db: *const alluvium_db,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { with_db(db, error, close) }
}

/// Closes the database if it is open, ignoring errors, and frees the handle. NULL is allowed. In a forked process it
/// closes nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_db_free(db: *mut alluvium_db) {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { raw::free(db) };
}

/// Makes all writes so far survive a power cut, whatever the durability.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_persist(
    db: *const alluvium_db,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { with_db(db, error, |db| Ok(db.persist()?)) }
}

/// Moves the items of the log to tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_flush(
    db: *const alluvium_db,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { with_db(db, error, |db| Ok(db.flush()?)) }
}

/// Merges everything into the last levels, and drops what no read can return. Rewrites the whole database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_compact(
    db: *const alluvium_db,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { with_db(db, error, |db| Ok(db.compact()?)) }
}

/// Waits until background work has nothing to do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_wait_idle(
    db: *const alluvium_db,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { with_db(db, error, |db| Ok(db.wait_idle()?)) }
}

/// Accepts writes again at once, if there is room after the disk was full.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_resume(
    db: *const alluvium_db,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { with_db(db, error, |db| Ok(db.resume()?)) }
}

/// The names of all keyspaces, each followed by a line feed, in a text that the caller frees by alluvium_free. Names
/// have no control characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_keyspace_names(
    db: *const alluvium_db,
    names: *mut *mut c_char,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(names, "names")?;
        let names = given.handle(db, "db")?.open()?.db.keyspace_names();
        out.set(allocation::text(&names.iter().map(|name| format!("{name}\n")).collect::<String>())?);
        done()
    })
}

/// Removes a keyspace with all its items. `existed`, which may be NULL, says whether there was one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_drop_keyspace(
    db: *const alluvium_db,
    name: *const c_char,
    existed: *mut bool,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let db = &given.handle(db, "db")?.open()?.db;
        let dropped = db.drop_keyspace(given.text(name, "name")?)?;
        given.out_or_none(existed).into_iter().for_each(|out| out.set(dropped));
        done()
    })
}

/// Calls `body` with a database.
///
/// # Safety
/// As for [`Given::by_caller`].
unsafe fn with_db(
    db: *const alluvium_db,
    error: *mut *mut alluvium_error,
    body: impl FnOnce(&Db) -> Result<(), Failure>,
) -> alluvium_status {
    // SAFETY: the caller promises it.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| body(&given.handle(db, "db")?.open()?.db).and_then(|()| done()))
}
