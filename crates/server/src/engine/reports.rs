//! What the engine says about itself, and copies of it.

use std::path::Path;

use alluvium::{BackupOptions, Db, Order};

use crate::store::{Report, ReportValue, StoreError};

fn entry(name: &str, value: impl Into<ReportValue>) -> (String, ReportValue) {
    (name.to_owned(), value.into())
}

/// Makes a backup in a new directory below `root`, checks it, and removes the oldest ones until `kept` are left.
pub(super) fn back_up(db: &Db, root: &Path, kept: Option<usize>) -> Result<Report, StoreError> {
    let (backup, made, removed) = db.backup_with(root, BackupOptions { verify: true, keep: kept })?;
    Ok(vec![
        entry("number", backup.number),
        entry("path", backup.path.display().to_string()),
        entry("tables", backup.tables),
        entry("bytes", backup.bytes),
        entry("linked_tables", made.linked_tables),
        entry("linked_bytes", made.linked_bytes),
        entry("copied_tables", made.copied_tables),
        entry("copied_bytes", made.copied_bytes),
        entry("removed_backups", removed),
    ])
}

/// Checks all that is stored.
pub(super) fn verify(db: &Db) -> Result<Report, StoreError> {
    let report = db.verify()?;
    Ok(vec![
        entry("tables", report.tables),
        entry("pages", report.pages),
        entry("items", report.items),
        entry("log_segments", report.log_segments),
        entry("log_bytes", report.log_bytes),
        entry("blob_files", report.blob_files),
        entry("large_items", report.large_items),
        entry("garbage_bytes", report.garbage_bytes),
        entry("problems", report.problems),
    ])
}

/// The keyspace of this name, if there is one.
fn keyspace(db: &Db, name: &str) -> Result<alluvium::Keyspace, StoreError> {
    let names = db.keyspace_names();
    if names.iter().any(|known| known == name) {
        return Ok(db.keyspace(name)?);
    }
    Err(format!("there is no keyspace {name:?}; there are {}", names.join(", ")).into())
}

/// Figures of one keyspace.
pub(super) fn keyspace_figures(db: &Db, name: &str) -> Result<Report, StoreError> {
    let keyspace = keyspace(db, name)?;
    let order = match keyspace.order() {
        Order::Hashed => "hash",
        _ => "semi-sorted",
    };
    Ok(vec![
        entry("keyspace", keyspace.name()),
        entry("approximate_items", keyspace.approximate_len()),
        entry("order", order),
        entry("plan", keyspace.plan().to_string()),
    ])
}

/// The plan of a keyspace, why it is that, and what is proposed.
pub(super) fn plan(db: &Db, name: &str) -> Result<Report, StoreError> {
    let keyspace = keyspace(db, name)?;
    let stats = db.stats();
    let mut report = vec![
        entry("keyspace", keyspace.name()),
        entry("plan", keyspace.plan().to_string()),
        entry("chosen", if keyspace.own_plan().is_some() { "given" } else { "automatically" }),
    ];
    let decision = stats.plan_decisions.iter().rev().find(|decision| decision.keyspace == name);
    match decision {
        Some(decision) => report.extend([
            entry("decided_at_ms", decision.at_ms),
            entry("reason", decision.reason.as_str()),
            entry("items", decision.items),
            entry("items_planned", decision.items_planned),
            entry("item_bytes", decision.item_bytes),
            entry("absent_share", decision.absent_share),
            entry("best", decision.best.clone()),
            entry("operation_us", decision.operation_us.0),
            entry("operation_us_of_best", decision.operation_us.1),
            entry("memory_bytes_per_item", decision.memory_bytes_per_item.0),
            entry("memory_bytes_per_item_of_best", decision.memory_bytes_per_item.1),
            entry("proposal", decision.proposal.clone()),
        ]),
        None => report.extend([
            entry("reason", "no decision since the database was opened: it is due from 100,000 items on"),
            entry("proposal", ReportValue::Nothing),
        ]),
    }
    if let Some(change) = stats.plan_changes.iter().find(|change| change.keyspace == name) {
        report.extend([
            entry("changes_from", change.from.as_str()),
            entry("tables_left", change.tables_left),
            entry("bytes_left", change.bytes_left),
        ]);
    }
    Ok(report)
}
