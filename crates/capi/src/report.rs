//! # Statistics, verification, repair and backups
//!
//! Reports are JSON, in texts that the caller frees by alluvium_free. They have the fields of the command `alluvium`
//! and of the Rust documentation; later versions may add fields.

use std::ffi::c_char;

use alluvium::{BackupOptions, RepairOptions};
use serde::Serialize;

use crate::allocation;
use crate::database::alluvium_db;
use crate::error::{alluvium_error, alluvium_status};
use crate::failure::Failure;
use crate::raw::{Given, done};

fn json(report: &impl Serialize) -> Result<*mut c_char, Failure> {
    allocation::text(&serde_json::to_string(report)?)
}

/// Figures of a database: items, bytes of memory and disk, traffic, background work.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_stats(
    db: *const alluvium_db,
    report: *mut *mut c_char,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(report, "report")?;
        out.set(json(&given.handle(db, "db")?.open()?.db.stats())?);
        done()
    })
}

/// Whether writes are accepted, and if not, why.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_health(
    db: *const alluvium_db,
    report: *mut *mut c_char,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(report, "report")?;
        out.set(json(&given.handle(db, "db")?.open()?.db.health())?);
        done()
    })
}

/// Reads and checks everything that is stored. Damage is no error of the call: the report lists it as "problems".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_verify(
    db: *const alluvium_db,
    report: *mut *mut c_char,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(report, "report")?;
        out.set(json(&given.handle(db, "db")?.open()?.db.verify()?)?);
        done()
    })
}

/// Makes a damaged database, which must not be open, usable again, with everything that can still be read. With
/// `dry_run` it only reports. Damaged files stay under names that begin with "lost-", unless `discard` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_repair(
    path: *const c_char,
    dry_run: bool,
    discard: bool,
    report: *mut *mut c_char,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(report, "report")?;
        let options = RepairOptions { dry_run, discard, ..RepairOptions::default() };
        out.set(json(&alluvium::repair(given.path(path, "path")?, &options)?)?);
        done()
    })
}

/// Makes the directory `path`, empty or absent, a database with the same content, by links where possible.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_checkpoint(
    db: *const alluvium_db,
    path: *const c_char,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        given.handle(db, "db")?.open()?.db.checkpoint(given.path(path, "path")?)?;
        done()
    })
}

/// Makes a backup in a new directory below `root`, and removes the oldest ones until `keep` are left; 0 removes none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_backup(
    db: *const alluvium_db,
    root: *const c_char,
    keep: usize,
    report: *mut *mut c_char,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(report, "report")?;
        let options = BackupOptions { keep: (keep > 0).then_some(keep), ..BackupOptions::default() };
        let db = &given.handle(db, "db")?.open()?.db;
        let (backup, _, _) = db.backup_with(given.path(root, "root")?, options)?;
        out.set(json(&backup)?);
        done()
    })
}

/// The backups below `root`, old to young.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_backups(
    root: *const c_char,
    report: *mut *mut c_char,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(report, "report")?;
        out.set(json(&alluvium::backups(given.path(root, "root")?)?)?);
        done()
    })
}

/// Copies a backup, or the youngest of a directory of backups, to `target`, and checks the copy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_restore(
    source: *const c_char,
    target: *const c_char,
    report: *mut *mut c_char,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(report, "report")?;
        let (source, target) = (given.path(source, "source")?, given.path(target, "target")?);
        out.set(json(&alluvium::restore(source, target, |_, _| {})?)?);
        done()
    })
}
