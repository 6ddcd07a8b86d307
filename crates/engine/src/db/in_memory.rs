//! Finds the keys of a batch that need no device: in the log, or by their rows.

use alluvium_base::KeyHash;

use super::read::View;
use crate::blob::StoredKey;
use crate::core::find_in_log;
use crate::error::Result;
use crate::item::Item;

/// Number of keys whose accesses to memory overlap.
const KEYS_AT_ONCE: usize = 64;

/// A key that is neither in the log nor in the row cache, and its number.
#[derive(Debug)]
pub(super) struct Unknown<'k> {
    pub number: usize,
    key: &'k [u8],
}

impl AsRef<[u8]> for Unknown<'_> {
    fn as_ref(&self) -> &[u8] {
        self.key
    }
}

impl View<'_> {
    /// Calls `visit` with the number of each key that memory knows, and its item if that is live. Returns the others.
    pub fn find_in_memory<'k, K: AsRef<[u8]>>(
        &self,
        keys: &'k [K],
        mut visit: impl FnMut(usize, Option<&Item<'_>>) -> Result<()>,
    ) -> Result<Vec<Unknown<'k>>> {
        let mut unknown = Vec::new();
        let mut sought: Vec<(usize, StoredKey<'k>, KeyHash)> =
            Vec::with_capacity(KEYS_AT_ONCE.min(keys.len()));
        for (chunk, keys) in keys.chunks(KEYS_AT_ONCE).enumerate() {
            sought.clear();
            for (number, key) in keys.iter().enumerate() {
                let key = StoredKey::of(key.as_ref());
                let hash = self.keyspace.hasher.hash(&key);
                self.version.log_stores.iter().for_each(|store| store.prefetch(hash));
                sought.push((number, key, hash));
            }
            let first = chunk * KEYS_AT_ONCE;
            let mut outcome = Ok(());
            sought.retain(|(number, key, hash)| match find_in_log(self.version, *hash, key) {
                Ok(Some(item)) if outcome.is_ok() => {
                    outcome = visit(first + number, Some(&item).filter(|item| self.moment.is_live(item)));
                    false
                }
                Ok(_) => true,
                Err(error) => {
                    outcome = Err(error);
                    false
                }
            });
            outcome?;
            if self.era.is_some() {
                self.find_rows(&mut sought, |number, item| visit(first + number, item))?;
            }
            unknown.extend(
                sought
                    .iter()
                    .map(|&(number, ..)| Unknown { number: first + number, key: keys[number].as_ref() }),
            );
        }
        Ok(unknown)
    }

    /// Calls `visit` with those of `sought` that have rows, and removes them.
    fn find_rows(
        &self,
        sought: &mut Vec<(usize, StoredKey<'_>, KeyHash)>,
        mut visit: impl FnMut(usize, Option<&Item<'_>>) -> Result<()>,
    ) -> Result<()> {
        let keys = sought.iter().map(|(_, key, _)| &**key);
        let mut has_row = vec![false; sought.len()];
        let mut outcome = Ok(());
        self.shared.rows.find_each(self.keyspace.id, self.version, keys, |place, item| {
            has_row[place] = true;
            if outcome.is_ok() {
                outcome = visit(sought[place].0, item.filter(|item| self.moment.is_live(item)));
            }
        });
        let mut place = 0;
        sought.retain(|_| {
            place += 1;
            !has_row[place - 1]
        });
        outcome
    }
}
