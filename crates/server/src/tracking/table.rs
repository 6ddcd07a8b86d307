//! [`Table`]: which clients have read which keys.

use std::collections::HashMap;
use std::sync::Arc;

use crate::random;

/// Maximum bytes of a table: keys and the numbers of their readers, with what each key takes besides.
const BYTES_MAX: usize = 256 << 20;
/// Approximate number of bytes that a key takes besides its own and its readers'.
const ENTRY_BYTES: usize = 128;

/// Keys with those that have read them since the last change.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: HashMap<Arc<[u8]>, Entry>,
    /// The keys in an order that has no meaning: one of them is picked at random.
    keys: Vec<Arc<[u8]>>,
    items: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    /// In ascending order.
    readers: Vec<u64>,
    /// Where the key is among all.
    position: usize,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn items(&self) -> usize {
        self.items
    }

    /// Registers a reader; returns whether it was not registered before.
    pub(super) fn insert(&mut self, key: &[u8], reader: u64) -> bool {
        if let Some(Entry { readers, .. }) = self.entries.get_mut(key) {
            let Err(position) = readers.binary_search(&reader) else { return false };
            readers.insert(position, reader);
        } else {
            let key: Arc<[u8]> = key.into();
            let entry = Entry { readers: vec![reader], position: self.keys.len() };
            self.entries.insert(key.clone(), entry);
            self.bytes += key.len() + ENTRY_BYTES;
            self.keys.push(key);
        }
        self.items += 1;
        self.bytes += size_of::<u64>();
        true
    }

    /// Removes a key; returns its readers, if there are any.
    pub(super) fn remove(&mut self, key: &[u8]) -> Option<Vec<u64>> {
        let Entry { readers, position } = self.entries.remove(key)?;
        self.keys.swap_remove(position);
        if let Some(moved) = self.keys.get(position) {
            self.entries.get_mut(moved).expect("each key has an entry").position = position;
        }
        self.items -= readers.len();
        self.bytes -= key.len() + ENTRY_BYTES + readers.len() * size_of::<u64>();
        Some(readers)
    }

    /// Removes a random key if there are more than `keys_max`, or more bytes than a table may have.
    pub(super) fn remove_if_beyond(&mut self, keys_max: usize) -> Option<(Arc<[u8]>, Vec<u64>)> {
        if self.keys.is_empty() || (self.keys.len() <= keys_max && self.bytes <= BYTES_MAX) {
            return None;
        }
        let key = self.keys[random::below(self.keys.len() as u64) as usize].clone();
        self.remove(&key).map(|readers| (key, readers))
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_registered_once_and_removed_with_the_key() {
        let mut table = Table::default();
        assert!(table.insert(b"a", 2));
        assert!(table.insert(b"a", 1));
        assert!(!table.insert(b"a", 2));
        assert!(table.insert(b"b", 1));
        assert!(table.insert(b"c", 3));
        assert_eq!((table.len(), table.items()), (3, 4));
        assert_eq!(table.remove(b"a"), Some(vec![1, 2]));
        assert_eq!(table.remove(b"a"), None);
        assert_eq!(table.remove(b"c"), Some(vec![3]));
        assert_eq!(table.remove(b"b"), Some(vec![1]));
        assert_eq!((table.len(), table.items(), table.bytes), (0, 0, 0));
    }

    #[test]
    fn a_bounded_table_loses_random_keys() {
        let mut table = Table::default();
        for key in 0..100u8 {
            table.insert(&[key], 1);
        }
        let mut removed: Vec<_> = std::iter::from_fn(|| table.remove_if_beyond(10)).collect();
        assert_eq!(table.len(), 10);
        removed.sort();
        removed.dedup();
        assert_eq!(removed.len(), 90);
    }
}
