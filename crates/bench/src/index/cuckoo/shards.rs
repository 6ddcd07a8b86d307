//! Keys spread over tables by their hashes, as the engine's shards do.

use alluvium_base::KeyHash;
use alluvium_index::cuckoo::{Candidates, CuckooTable};

use super::PREFETCH_DISTANCE;

/// Keys looked up per call.
const BATCH_LEN: usize = 256;

/// Hashes, and the offset stored with each.
pub struct Numbered {
    pub hashes: Vec<KeyHash>,
    pub offsets: Vec<u32>,
}

impl Numbered {
    /// Numbers `hashes` in their order.
    pub fn new(hashes: Vec<KeyHash>) -> Self {
        let offsets = (0..hashes.len() as u32).collect();
        Self { hashes, offsets }
    }

    fn each(&self) -> impl Iterator<Item = (KeyHash, u32)> + '_ {
        self.hashes.iter().copied().zip(self.offsets.iter().copied())
    }
}

/// The number of entries of each table.
pub struct Shards {
    entries: Vec<usize>,
}

impl Shards {
    /// `count` tables that these keys fill to 95 %, each sized for its actual share; a small table that by chance is
    /// full earlier is made larger.
    pub fn sized_for(keys: &Numbered, count: usize) -> Self {
        let mut shards = Self { entries: vec![0; count] };
        for &hash in &keys.hashes {
            let number = shards.number(hash);
            shards.entries[number] += 1;
        }
        let grouped = shards.group(keys);
        let tables = shards.entries.clone();
        let mut start = 0;
        for (number, &len) in tables.iter().enumerate() {
            let part = &grouped.hashes[start..start + len];
            let fits = |entries| {
                let table = CuckooTable::with_entries(entries);
                part.iter().all(|&hash| table.insert(hash, 0).is_ok())
            };
            while !fits(shards.entries[number]) {
                shards.entries[number] += 4;
            }
            start += len;
        }
        shards
    }

    /// Number of the table of a key.
    #[inline]
    pub fn number(&self, hash: KeyHash) -> usize {
        ((u128::from(hash.high()) * self.entries.len() as u128) >> 64) as usize
    }

    /// The same keys in the order of the tables.
    pub fn group(&self, keys: &Numbered) -> Numbered {
        let mut pairs: Vec<(KeyHash, u32)> = keys.each().collect();
        pairs.sort_by_key(|&(hash, _)| self.number(hash));
        let (hashes, offsets) = pairs.into_iter().unzip();
        Numbered { hashes, offsets }
    }

    pub fn empty_tables(&self) -> Vec<CuckooTable> {
        self.entries.iter().map(|&entries| CuckooTable::with_entries(entries)).collect()
    }

    /// Inserts `keys` in their order.
    pub fn fill(&self, tables: &[CuckooTable], keys: &Numbered) {
        for (hash, offset) in keys.each() {
            tables[self.number(hash)].insert(hash, offset).expect("the tables were sized for the keys");
        }
    }

    /// Inserts `keys` in their order, with prefetching. If a table is full before 95 % in this order, which happens to
    /// small ones, the key is skipped.
    pub fn fill_fetching_ahead(&self, tables: &[CuckooTable], keys: &Numbered) {
        let mut refused = 0;
        for (index, (hash, offset)) in keys.each().enumerate() {
            if let Some(&later) = keys.hashes.get(index + PREFETCH_DISTANCE) {
                tables[self.number(later)].prefetch(later);
            }
            refused += usize::from(tables[self.number(hash)].insert(hash, offset).is_err());
        }
        assert!(refused <= keys.hashes.len() / 100, "{refused} keys found no room");
    }

    /// Number of `keys` that are found with their offset, one after another.
    pub fn found(&self, tables: &[CuckooTable], keys: &Numbered) -> usize {
        keys.each()
            .filter(|&(hash, number)| {
                tables[self.number(hash)].candidates(hash).any(|(_, offset)| offset == number)
            })
            .count()
    }

    /// Number of `keys` that are found with their offset, in batches.
    pub fn found_in_batches(&self, tables: &[CuckooTable], keys: &Numbered) -> usize {
        let mut found = [Candidates::default(); BATCH_LEN];
        let mut count = 0;
        for (hashes, numbers) in keys.hashes.chunks(BATCH_LEN).zip(keys.offsets.chunks(BATCH_LEN)) {
            let found = &mut found[..hashes.len()];
            CuckooTable::candidates_across(|hash| &tables[self.number(hash)], hashes, found);
            for (candidates, &number) in found.iter_mut().zip(numbers) {
                count += usize::from(candidates.any(|(_, offset)| offset == number));
            }
        }
        count
    }

    /// Total number of candidates of `hashes`.
    pub fn candidates_of(&self, tables: &[CuckooTable], hashes: &[KeyHash]) -> usize {
        hashes.iter().map(|&hash| tables[self.number(hash)].candidates(hash).len()).sum()
    }
}
