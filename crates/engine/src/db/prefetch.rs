//! `prefetch`: reads ahead what later operations on many keys need.

use super::keyspace::Keyspace;
use super::lookups::Lookups;
use super::multi_get::Batch;
use crate::error::Result;

impl Keyspace {
    /// Reads what tables have for `keys`, with all reads in flight together, and keeps it in the row cache. Operations
    /// that follow soon, of any kind, then do not wait for the device one after the other. Returns the number of
    /// keys for which pages were read. Does nothing without a row cache.
    ///
    /// The rows are kept even where rows of gets would not be, so prefetch only what is used.
    pub fn prefetch<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<usize> {
        if self.database().rows.era().is_none() {
            return Ok(0);
        }
        self.in_view(|view| {
            view.shared.check_open()?;
            let unknown = view.find_in_memory(keys, |_, _| Ok(()))?;
            if unknown.is_empty() {
                return Ok(0);
            }
            let mut lookups = Lookups::to_keep(Batch::new(view.shared, unknown.len()));
            // Keys whose items have moved meanwhile are read by the operations that follow.
            lookups.find_each(&view, unknown.into_iter(), |_, _| Ok(()))?;
            Ok(lookups.kept)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Db, Update};

    #[test]
    fn what_was_prefetched_is_found_without_a_read() {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::builder(directory.path()).row_cache_bytes_max(1 << 20).background(false).open().unwrap();
        let keyspace = db.keyspace("items").unwrap();
        let keys: Vec<String> = (0..100).map(|number| format!("key {number}")).collect();
        for key in &keys[..50] {
            keyspace.insert(key, "value").unwrap();
        }
        db.flush().unwrap();
        assert!(keyspace.prefetch(&keys).unwrap() >= 50);
        let before = db.stats().traffic;
        assert_eq!(keyspace.prefetch(&keys).unwrap(), 0);
        for (number, key) in keys.iter().enumerate() {
            assert_eq!(keyspace.contains_key(key).unwrap(), number < 50);
            keyspace.update(key, |_| Update::Insert(b"new".to_vec())).unwrap();
            assert_eq!(keyspace.get(key).unwrap().as_deref(), Some(&b"new"[..]));
        }
        assert_eq!(db.stats().traffic.page_reads, before.page_reads);
    }
}
