//! A plain chained hash table: a directory of heads, links in the nodes.

use alluvium_index::slb::{Lookup, Reference};

use super::subject::{Item, Subject, hash_of, key_of, value_word};

const NIL: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Node {
    item: Item,
    next: u32,
}

/// A chained hash table whose chains have `CHAIN` nodes on average.
#[derive(Debug)]
pub struct Chained<const CHAIN: usize> {
    heads: Vec<u32>,
    nodes: Vec<Node>,
    free: Vec<u32>,
}

impl<const CHAIN: usize> Chained<CHAIN> {
    fn head_of(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.heads.len() as u128) >> 64) as usize
    }

    /// Puts a new item at the head of its chain and returns its position.
    fn link(&mut self, item: Item) -> u32 {
        let head = self.head_of(hash_of(item.key));
        let node = Node { item, next: self.heads[head] };
        let number = match self.free.pop() {
            Some(number) => {
                self.nodes[number as usize] = node;
                number
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        self.heads[head] = number;
        number
    }

    /// Takes a key's node out of its chain.
    fn unlink(&mut self, key: u64) {
        let head = self.head_of(hash_of(key));
        let (mut before, mut number) = (NIL, self.heads[head]);
        while number != NIL && self.nodes[number as usize].item.key != key {
            (before, number) = (number, self.nodes[number as usize].next);
        }
        if number == NIL {
            return;
        }
        let next = self.nodes[number as usize].next;
        match before {
            NIL => self.heads[head] = next,
            _ => self.nodes[before as usize].next = next,
        }
        self.free.push(number);
    }

    /// Replaces a key's item by a new one at another position, like the thesis's SET; returns the new position.
    pub fn replace(&mut self, key: u64) -> Reference {
        self.unlink(key);
        self.link(Item::of(key)).into()
    }
}

impl<const CHAIN: usize> Lookup for Chained<CHAIN> {
    type Key = u64;
    type Item<'a> = &'a Item;

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
        let mut number = self.heads[self.head_of(hash)];
        while let Some(node) = self.nodes.get(number as usize) {
            if node.item.key == *key {
                return Some((number.into(), &node.item));
            }
            number = node.next;
        }
        None
    }

    #[inline(always)]
    fn resolve(&self, key: &u64, reference: Reference) -> Option<&Item> {
        let node = self.nodes.get(reference.number() as usize)?;
        (node.item.key == *key).then_some(&node.item)
    }
}

impl<const CHAIN: usize> Subject for Chained<CHAIN> {
    fn build(items: u32) -> Self {
        let heads = vec![NIL; (items as usize / CHAIN).max(1)];
        let mut table = Self { heads, nodes: Vec::with_capacity(items as usize), free: Vec::new() };
        for number in 0..items {
            table.link(Item::of(key_of(number)));
        }
        table
    }

    #[inline(always)]
    fn is_right(key: u64, item: &Item) -> bool {
        item.value[0] == value_word(key)
    }
}
