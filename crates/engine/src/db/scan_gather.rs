//! [`Gather`]: collects the items behind a cursor.

use std::sync::Arc;

use alluvium_base::{HashRange, KeyHash};

use super::merged_items::MergedItems;
use super::scan_place::{ScanOrder, first_place, first_suffix, group, hashes_of_group};
use crate::core::{Collected, KeyspaceShared, Piece, Shared};
use crate::error::Result;
use crate::level::{Version, shard_range};
use crate::merge::YoungItems;
use crate::table::{PAGE_BYTES, Section, SectionScanner};

/// Number of items beyond those requested that a group may have and still be collected as a whole.
const GROUP_SLACK: usize = 256;
/// Assumed bytes of an item, for the size of reads.
const ITEM_BYTES_GUESS: usize = 64;
/// Maximum bytes of a read.
const READ_BYTES_MAX: usize = 64 << 10;
/// Factor by which more items are looked for than requested, since an estimate may be too high.
const ESTIMATE_SLACK: f64 = 1.5;

/// Collects the items of a version from a place on, about as many as requested.
///
/// With hashed keys, no piece extends beyond the finest shard of the log and of runs. So each run in the order of slots
/// or in buckets has one section there, which must be read as a whole: its items are kept in order for the next pieces,
/// except those of parts of the shard for which there is no room.
pub(super) struct Gather<'a> {
    pub shared: &'a Shared,
    pub keyspace: &'a KeyspaceShared,
    pub version: &'a Arc<Version>,
    /// Number of items requested.
    pub target: usize,
    /// Bytes of items after which a piece ends.
    pub bytes_max: usize,
}

impl Gather<'_> {
    /// The items from a place on. Items of one place stay together, and each piece makes progress.
    pub fn piece(&self, from: u64) -> Result<Piece> {
        match ScanOrder::of(&self.keyspace.hasher) {
            ScanOrder::Hashes => self.by_hash(from),
            ScanOrder::Groups if from == first_place(group(from)) => self.by_groups(group(from)),
            ScanOrder::Groups => self.by_suffix(group(from), from),
        }
    }

    fn by_hash(&self, from: u64) -> Result<Piece> {
        let low = u128::from(from) << 64;
        let part = self.part(KeyHash(low));
        let within = self.items_within(HashRange::new(low, part.high)).max(1.0);
        let share = (self.target as f64 * ESTIMATE_SLACK / within).min(1.0);
        let width = ((part.high - low) as f64 * share) as u128;
        // A place is never split.
        let high = low.saturating_add(width).min(part.high) | u128::from(u64::MAX);
        let mut merged = self.near(HashRange::new(low, high), part)?;
        let mut piece = Piece::default();
        let mut last = None;
        while let Some(place) = merged.next_hash().map(KeyHash::high) {
            if self.is_full(&piece, 0, 0) && last != Some(place) {
                piece.finish(Some(place));
                return Ok(piece);
            }
            last = Some(place);
            merged.step(|_, item| piece.push(place, item))?;
        }
        if high >= part.high {
            self.shared.scan_cache.drop_part(self.keyspace.id, part);
        }
        piece.finish(ScanOrder::Hashes.place_behind(high));
        Ok(piece)
    }

    /// Whole groups from this one on, or the beginning of this one if it is large.
    fn by_groups(&self, from: u64) -> Result<Piece> {
        let order = ScanOrder::Groups;
        let range = self.reach(from);
        let mut merged = self.near(range, range)?;
        let mut piece = Piece::default();
        let (mut current, mut current_start) = (None, 0);
        while let Some(hash) = merged.next_hash() {
            let place = order.place(hash);
            let group = group(place);
            if current != Some(group) {
                if self.is_full(&piece, 0, 0) {
                    piece.finish(Some(first_place(group)));
                    return Ok(piece);
                }
                (current, current_start) = (Some(group), piece.len());
            } else if self.is_overfull(&piece) {
                if current_start == 0 {
                    return self.by_suffix(group, first_place(group));
                }
                piece.truncate(current_start);
                piece.finish(Some(first_place(group)));
                return Ok(piece);
            }
            merged.step(|_, item| piece.push(place, item))?;
        }
        piece.finish(order.place_behind(range.high));
        Ok(piece)
    }

    /// Items of one group from a place on, from each of its prefixes; usually there is only one.
    fn by_suffix(&self, group: u64, from: u64) -> Result<Piece> {
        let order = ScanOrder::Groups;
        let HashRange { low, high } = hashes_of_group(group);
        let suffix = u128::from(first_suffix(from));
        let mut piece = Piece::default();
        let mut to: Option<u64> = None;
        let mut next = Some(low);
        while let Some(start) = next {
            let range = HashRange::new(start, high);
            let mut merged = self.near(range, range)?;
            let Some(prefix_hash) = merged.next_hash().map(KeyHash::high) else { break };
            if suffix > 0 {
                let prefix = HashRange::of_high_half(prefix_hash);
                let range = HashRange::new(prefix.low | suffix, prefix.high);
                merged = self.near(range, range)?;
            }
            let (first, first_byte) = (piece.len(), piece.encoded_bytes());
            let mut last = None;
            while let Some(hash) = merged.next_hash().filter(|hash| hash.high() == prefix_hash) {
                let place = order.place(hash);
                if self.is_full(&piece, first, first_byte) && last != Some(place) {
                    to = Some(to.map_or(place, |to| to.min(place)));
                }
                // What is behind the end of another prefix's items belongs to the next piece.
                if to.is_some_and(|to| place >= to) {
                    break;
                }
                last = Some(place);
                merged.step(|_, item| piece.push(place, item))?;
            }
            next = prefix_hash.checked_add(1).map(|next| u128::from(next) << 64).filter(|&next| next <= high);
        }
        piece.finish(to.or_else(|| order.place_behind(high)));
        Ok(piece)
    }

    /// Whether as many items as requested were pushed after the first `first` ones, which take `first_byte` bytes.
    fn is_full(&self, piece: &Piece, first: usize, first_byte: usize) -> bool {
        piece.len() - first >= self.target || piece.encoded_bytes() - first_byte >= self.bytes_max
    }

    fn is_overfull(&self, piece: &Piece) -> bool {
        piece.len() >= 2 * self.target + GROUP_SLACK || piece.encoded_bytes() >= 2 * self.bytes_max
    }

    fn near(&self, range: HashRange, part: HashRange) -> Result<MergedItems> {
        let read_bytes = (self.target.saturating_mul(ITEM_BYTES_GUESS) / PAGE_BYTES + 1) * PAGE_BYTES;
        let read_bytes = read_bytes.min(READ_BYTES_MAX).min(self.shared.memory.budget().read_bytes);
        let chained = self.sorted_chains(part)?;
        let sorted = |section: &Arc<Section>| self.sorted(section, part);
        MergedItems::near(self.shared, self.version, range, read_bytes, chained, sorted)
    }

    /// The items of a run's section in this part of the hash space, in order.
    fn sorted(&self, section: &Arc<Section>, part: HashRange) -> Result<Arc<YoungItems>> {
        let cache = &self.shared.scan_cache;
        let collected = Collected::of_section(section);
        if let Some(items) = cache.sorted(collected, part) {
            return Ok(items);
        }
        let read_bytes = self.shared.memory.budget().read_bytes;
        let _buffer = self.shared.hold_buffers(read_bytes as u64);
        let mut items = YoungItems::default();
        let mut scanner = SectionScanner::with_read_bytes(section.clone(), 0, read_bytes);
        while scanner.advance()? {
            if let Some((hash, item)) = scanner.current_encoded()
                && part.contains(hash.0)
            {
                items.push(hash, 0, item.bytes);
            }
        }
        items.finish();
        let items = Arc::new(items);
        cache.keep_sorted(self.shared, (section.keyspace(), collected), part, &items);
        Ok(items)
    }

    /// The items of the chains' files in this part of the hash space, in order.
    fn sorted_chains(&self, part: HashRange) -> Result<Option<Arc<YoungItems>>> {
        let Some(chain) = &self.version.chain else { return Ok(None) };
        let Some(collected) = Collected::of_chains(chain) else { return Ok(None) };
        let cache = &self.shared.scan_cache;
        if let Some(items) = cache.sorted(collected, part) {
            return Ok(Some(items));
        }
        let read_bytes = self.shared.memory.budget().read_bytes;
        let _buffer = self.shared.hold_buffers(read_bytes as u64);
        let items = Arc::new(chain.sorted(&self.keyspace.hasher, read_bytes, part)?);
        cache.keep_sorted(self.shared, (chain.keyspace(), collected), part, &items);
        Ok(Some(items))
    }

    /// The part of the hash space around `hash` for which the items of runs' sections are kept in order: the finest
    /// shard of the log and the runs there, or a smaller part if its items would take more than half of the room for
    /// scans.
    fn part(&self, hash: KeyHash) -> HashRange {
        let Version { log_stores, chain, body, .. } = &**self.version;
        let bits = log_stores.iter().map(|store| store.shard_bits());
        let bits = bits.chain(body.shard_bits()).max().unwrap_or(0);
        let bytes = |(section, shard_bits): (&Arc<Section>, u32)| {
            YoungItems::memory_bytes_for(section.item_count(), section.used_bytes()) >> (bits - shard_bits)
        };
        let chained = chain.as_ref().map_or(0, |chain| chain.memory_bytes_sorted() >> bits);
        let needed: u64 = chained + body.scattered_sections(hash).map(bytes).sum::<u64>();
        let room = (self.shared.memory.budget().scan_bytes() / 2).max(1);
        let bits_within = needed.div_ceil(room).max(1).next_power_of_two().ilog2();
        let bits = (bits + bits_within).min(63);
        shard_range(bits, hash.prefix(bits))
    }

    /// The range of hashes from a group on that has about as many items as requested: whole groups.
    fn reach(&self, from: u64) -> HashRange {
        let mut range = hashes_of_group(from);
        let mut width = range.high - range.low;
        while range.high < u128::MAX && self.items_within(range) < self.target as f64 * ESTIMATE_SLACK {
            width = width.saturating_mul(4);
            let high = range.low.saturating_add(width);
            range.high = hashes_of_group(group((high >> 64) as u64)).high;
        }
        range
    }

    /// Estimated items in `range`, including obsolete versions.
    fn items_within(&self, range: HashRange) -> f64 {
        let logged: f64 = self.version.log_stores.iter().map(|store| store.len_within(range)).sum();
        logged + self.version.chained_items_within(range) + self.version.body.items_within(range)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use alluvium_base::PrefixRule;
    use alluvium_io::{SimulatedClock, SimulatedStorage};

    use super::*;
    use crate::environment::Environment;
    use crate::options::Durability;
    use crate::{Db, KeyspaceOptions};

    fn open() -> Db {
        let environment = Environment {
            clock: Arc::new(SimulatedClock::default()),
            random_seed: 5,
            ..Environment::over(Arc::new(SimulatedStorage::new(3)))
        };
        let builder = Db::builder("scans").background(false).durability(Durability::Buffered);
        builder.environment(environment).open().unwrap()
    }

    /// Two prefixes of one group, found by trying millions.
    #[test]
    fn prefixes_of_one_group_are_passed_together() {
        let db = open();
        let slash = PrefixRule::Delimiter { byte: b'/' };
        let items = db.keyspace_with("items", &KeyspaceOptions::semi_sorted(slash)).unwrap();
        let hash = |number: u32| items.shared.hasher.prefix_hash(&number.to_be_bytes()).unwrap();
        let mut groups: Vec<(u64, u32)> = (0..3 << 20).map(|number| (group(hash(number)), number)).collect();
        groups.sort_unstable();
        let pair = groups.windows(2).find(|pair| pair[0].0 == pair[1].0).expect("some of millions share one");
        let key =
            |prefix: u32, number: u32| [&prefix.to_be_bytes()[..], b"/", &number.to_be_bytes()].concat();
        let has_slash = |prefix: u32| prefix.to_be_bytes().contains(&b'/');
        assert!(!has_slash(pair[0].1) && !has_slash(pair[1].1));
        let mut expected = BTreeSet::new();
        for number in 0..3000 {
            for &(_, prefix) in pair {
                // One has many items, the other few.
                if prefix == pair[0].1 || number % 50 == 0 {
                    items.insert(key(prefix, number), [1; 20]).unwrap();
                    expected.insert(key(prefix, number));
                }
            }
            items.insert(key(number, 0), "alone").unwrap();
            expected.insert(key(number, 0));
            if number % 1000 == 700 {
                db.flush().unwrap();
            }
        }
        for count in [1, 7, 300, 10_000] {
            let (mut seen, mut cursor) = (BTreeSet::new(), 0);
            loop {
                let (page, next) = items.scan(cursor, count).unwrap();
                assert!(page.len() <= count + 2, "{} of {count}", page.len());
                for (key, _) in page {
                    assert!(seen.insert(key), "a key came twice");
                }
                if next == 0 {
                    break;
                }
                cursor = next;
                // Without help from the pieces of earlier calls.
                if count == 7 {
                    items.handle.shared.scan_cache.clear();
                }
            }
            assert_eq!(seen, expected);
        }
    }
}
