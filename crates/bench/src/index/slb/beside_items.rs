//! Indexes that map keys to numbers of items, which are stored separately: a skip list, two search trees and a cuckoo
//! table.

use std::collections::BTreeMap;

use alluvium_base::KeyHash;
use alluvium_index::cuckoo::CuckooTable;
use alluvium_index::slb::{Lookup, Reference};
use crossbeam_skiplist::SkipMap;
use scc::TreeIndex;

use super::subject::{Item, Subject, hash_of, items, key_of, value_word};

/// A map from keys to numbers.
pub trait NumberMap: Sized {
    /// The map of the keys of items 0 to `items` - 1.
    fn of_items(items: u32) -> Self;

    /// The number of a key; a number that `is_it` refuses belongs to another key.
    fn number(&self, key: u64, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32>;
}

/// crossbeam's skip list.
pub type SkipList = SkipMap<u64, u32>;

/// scc's B+-tree.
pub type BPlusTree = TreeIndex<u64, u32>;

/// The standard library's B-tree.
pub type BTree = BTreeMap<u64, u32>;

impl NumberMap for SkipList {
    fn of_items(items: u32) -> Self {
        (0..items).map(|number| (key_of(number), number)).collect()
    }

    #[inline(always)]
    fn number(&self, key: u64, _: u64, _: impl Fn(u32) -> bool) -> Option<u32> {
        self.get(&key).map(|entry| *entry.value())
    }
}

impl NumberMap for BPlusTree {
    fn of_items(items: u32) -> Self {
        let tree = Self::new();
        for number in 0..items {
            tree.insert_sync(key_of(number), number).expect("keys differ");
        }
        tree
    }

    #[inline(always)]
    fn number(&self, key: u64, _: u64, _: impl Fn(u32) -> bool) -> Option<u32> {
        self.peek_with(&key, |_, number| *number)
    }
}

impl NumberMap for BTree {
    fn of_items(items: u32) -> Self {
        // One by one, so that nodes are as full as those of a growing tree.
        let mut tree = Self::new();
        for number in 0..items {
            tree.insert(key_of(number), number);
        }
        tree
    }

    #[inline(always)]
    fn number(&self, key: u64, _: u64, _: impl Fn(u32) -> bool) -> Option<u32> {
        self.get(&key).copied()
    }
}

impl NumberMap for CuckooTable {
    fn of_items(items: u32) -> Self {
        let table = Self::with_entries(items as usize);
        for number in 0..items {
            table.insert(cuckoo_hash(hash_of(key_of(number))), number).expect("sized for the items");
        }
        table
    }

    #[inline(always)]
    fn number(&self, _: u64, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.candidates(cuckoo_hash(hash)).map(|(_, number)| number).find(|&number| is_it(number))
    }
}

#[inline(always)]
fn cuckoo_hash(hash: u64) -> KeyHash {
    KeyHash::from_halves(0, hash)
}

/// Items and a map to their numbers.
#[derive(Debug)]
pub struct BesideItems<M> {
    map: M,
    items: Vec<Item>,
}

impl<M: NumberMap> Lookup for BesideItems<M> {
    type Key = u64;
    type Item<'a>
        = &'a Item
    where
        M: 'a;

    #[inline(always)]
    fn hash(&self, key: &u64) -> u64 {
        hash_of(*key)
    }

    #[inline(always)]
    fn search(&self, key: &u64) -> Option<(Reference, &Item)> {
        self.search_hashed(key, hash_of(*key))
    }

    #[inline(always)]
    fn search_hashed(&self, key: &u64, hash: u64) -> Option<(Reference, &Item)> {
        let is_it = |number| self.items.get(number as usize).is_some_and(|item| item.key == *key);
        let number = self.map.number(*key, hash, is_it)?;
        Some((number.into(), self.items.get(number as usize)?))
    }

    #[inline(always)]
    fn resolve(&self, key: &u64, reference: Reference) -> Option<&Item> {
        self.items.get(reference.number() as usize).filter(|item| item.key == *key)
    }
}

impl<M: NumberMap> Subject for BesideItems<M> {
    fn build(count: u32) -> Self {
        Self { map: M::of_items(count), items: items(count) }
    }

    #[inline(always)]
    fn is_right(key: u64, item: &Item) -> bool {
        item.value[0] == value_word(key)
    }
}
