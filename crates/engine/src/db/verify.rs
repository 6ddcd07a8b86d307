//! Checking everything that is stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::database::Db;
use crate::error::Result;

/// What [`Db::verify`] found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct VerifyReport {
    /// Table files read.
    pub tables: usize,
    /// Pages whose checksum, order and contents were checked.
    pub pages: u64,
    /// Items seen.
    pub items: u64,
    /// What is wrong, one line each; empty when everything is sound.
    pub problems: Vec<String>,
}

impl Db {
    /// Reads all tables and checks every checksum, order, filter and count. Writes nothing.
    ///
    /// (Log records and the manifest are checked whenever the database is opened.)
    pub fn verify(&self) -> Result<VerifyReport> {
        let shared = self.shared();
        let mut report = VerifyReport::default();
        let mut files = BTreeMap::new();
        let mut live = Vec::new();
        for keyspace in shared.all_keyspaces() {
            let version = keyspace.version.load();
            for run in &version.runs {
                files.insert(run.file.number, run.file.clone());
            }
            for table in version.sorted.iter() {
                files.insert(table.file.number, table.file.clone());
            }
            let in_runs = version.runs.iter().flat_map(|run| run.sections.iter().flatten());
            live.extend(in_runs.map(|section| section.section.clone()));
            live.extend(version.sorted.iter().map(|table| table.section.clone()));
        }
        for file in files.values() {
            let outcome = file.table.verify(|section| live.iter().any(|kept| Arc::ptr_eq(kept, section)))?;
            report.pages += outcome.page_count;
            report.items += outcome.item_count;
            report.problems.extend(outcome.corruptions.iter().map(ToString::to_string));
        }
        report.tables = files.len();
        Ok(report)
    }
}
