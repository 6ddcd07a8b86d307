//! How much memory the row cache takes.

use alluvium_io::machine_memory_bytes;

use super::memory_limit::MemoryControl;
use super::rows::{Rows, RowsSettings};
use super::shared::Shared;
use crate::level::Version;
use crate::options::Settings;

/// Bytes of the row cache of a database without a memory limit, on a machine with enough memory.
const ROWS_BYTES_DEFAULT: u64 = 64 << 20;
/// Maximum share of the machine's memory that the row cache takes by default.
const MACHINE_SHARE: u64 = 64;

/// A new row cache. Under a memory limit it begins small: [`Shared::share_with_rows`] enlarges it.
pub(crate) fn new_rows(settings: &Settings, seed: u64) -> Rows {
    let by_default = || {
        let machine = machine_memory_bytes().unwrap_or(u64::MAX);
        ROWS_BYTES_DEFAULT.min(machine / MACHINE_SHARE)
    };
    Rows::new(&RowsSettings {
        bytes_without_limit: settings.row_cache_bytes_max.unwrap_or_else(by_default),
        memory_bytes_max: settings.memory_bytes_max,
        codec: settings.row_codec,
        seed,
    })
}

impl Shared {
    /// Gives the row cache what filters and indexes leave: they come first, because without them a lookup takes
    /// additional reads, whereas a row saves one. Called when tables or the limit have changed.
    ///
    /// The rows' part is a loan from the share of filters and indexes. An eighth of the rest stays free for the tables
    /// of the next merge; where prefixes are scanned, half stays for the pages that scans keep.
    pub fn share_with_rows(&self) {
        self.rows.resize(|| self.share_of_rows());
    }

    fn share_of_rows(&self) -> (u64, Option<&MemoryControl>) {
        let bytes_max = self.settings.row_cache_bytes_max;
        if self.memory.budget().limit.is_none() {
            return (self.rows.bytes_without_limit, None);
        }
        let keyspaces = self.all_keyspaces();
        let wanted = |version: &Version| -> u64 {
            version.body.sections().map(|section| section.index_bytes_wanted()).sum()
        };
        let wanted: u64 = keyspaces.iter().map(|keyspace| wanted(&keyspace.version.load())).sum();
        let left = self.memory.index.bound().saturating_sub(wanted + self.memory.index.table_bytes());
        let keeps_pages = keyspaces.iter().any(|keyspace| keyspace.hasher.is_semi_sorted());
        let bytes = if keeps_pages { left / 2 } else { left - left / 8 };
        (bytes.min(bytes_max.unwrap_or(u64::MAX)), Some(&self.memory))
    }
}

#[cfg(test)]
mod tests {
    use crate::Db;

    const LIMIT: u64 = 4 << 20;

    /// The share that a thread computed before the limit was set must not come after it.
    #[test]
    fn rows_have_the_share_of_the_last_limit() {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::builder(directory.path()).background(false).open().unwrap();
        for _ in 0..300 {
            std::thread::scope(|scope| {
                let other = scope.spawn(|| db.shared().share_with_rows());
                db.set_memory_bytes_max(Some(LIMIT)).unwrap();
                other.join().unwrap();
            });
            assert!(db.shared().rows.stats().bytes_max <= LIMIT);
            db.set_memory_bytes_max(None).unwrap();
        }
    }

    #[test]
    fn a_limit_that_is_set_while_items_are_carried_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::builder(directory.path()).background(false).open().unwrap();
        let items = db.keyspace("items").unwrap();
        items.insert("key", "value").unwrap();
        let carried = db.shared().rows.carry(items.shared.id, &items.shared.version.load());
        assert!(carried.is_some());
        db.set_memory_bytes_max(Some(LIMIT)).unwrap();
        drop(carried);
        assert!(db.shared().rows.is_outdated());
        db.flush().unwrap();
        assert!(db.shared().rows.stats().bytes_max <= LIMIT && !db.shared().rows.is_outdated());
    }
}
