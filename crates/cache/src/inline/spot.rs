//! A bucket and a tag: where the item of a key is, if it is stored inline.

use super::bucket::{CELLS, InlineBucket};
use super::cells::Cell;
use super::table::InlineTable;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot<'a> {
    table: &'a InlineTable,
    bucket: &'a InlineBucket,
    number: usize,
    tag: u16,
}

/// The preferred way of an item with this tag.
#[inline(always)]
fn home(tag: u16) -> usize {
    (usize::from(tag) * CELLS) >> u16::BITS
}

impl<'a> Spot<'a> {
    #[inline(always)]
    pub(super) fn new(table: &'a InlineTable, number: usize, tag: u16) -> Self {
        Self { table, bucket: &table.buckets[number], number, tag }
    }

    /// The bucket.
    #[inline(always)]
    pub fn bucket(&self) -> &'a InlineBucket {
        self.bucket
    }

    /// Starts loading the bucket, and the cell that probably contains the item.
    #[inline(always)]
    pub fn prefetch(&self) {
        self.bucket.prefetch();
        self.table.cells.prefetch_ahead(self.number, home(self.tag));
    }

    /// Starts loading the cells of items with the tag; returns whether there are any.
    #[inline(always)]
    pub fn prefetch_cells(&self) -> bool {
        let found = self.bucket.matches(self.tag);
        let mut ways = found;
        while ways != 0 {
            self.table.cells.prefetch(self.number, ways.trailing_zeros() as usize);
            ways &= ways - 1;
        }
        found != 0
    }

    /// The cell in `way`.
    #[inline(always)]
    pub fn cell(&self, way: usize) -> Cell<'a> {
        self.table.cells.cell(self.number, way)
    }

    /// The first cell with the tag.
    #[inline(always)]
    pub fn first(&self) -> Option<(usize, Cell<'a>)> {
        let candidates = self.bucket.matches(self.tag);
        let way = candidates.trailing_zeros() as usize;
        (candidates != 0).then(|| (way, self.cell(way)))
    }

    /// Way and cell of `key`, if it has one.
    #[inline(always)]
    pub fn find(&self, key: &[u8]) -> Option<(usize, Cell<'a>)> {
        let mut candidates = self.bucket.matches(self.tag);
        while candidates != 0 {
            let way = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            let cell = self.cell(way);
            if cell.is_of(key) {
                return Some((way, cell));
            }
        }
        None
    }

    /// An empty way, the item's preferred one if possible.
    pub fn empty_way(&self) -> Option<usize> {
        let empty = self.bucket.matches(0);
        let home = home(self.tag);
        match empty {
            0 => None,
            _ if empty & 1 << home != 0 => Some(home),
            _ => Some(empty.trailing_zeros() as usize),
        }
    }

    /// Writer, within a change: stores a new item that fits in the bucket, whose cell in `free_way` is free. An item
    /// that occupies the new one's home without being at home there moves to the free cell.
    pub fn put(&self, free_way: usize, key: &[u8], value: &[u8]) {
        let own = home(self.tag);
        let other = self.bucket.tag(own);
        let is_in_the_way = own != free_way && home(other) != own;
        if is_in_the_way {
            self.table.cells.copy(self.number, own, free_way);
            self.bucket.set(free_way, other, self.bucket.counts().get(own));
        }
        let way = if is_in_the_way { own } else { free_way };
        self.table.cells.put(self.number, way, key, value);
        self.bucket.set(way, self.tag, 0);
    }

    /// Writer, within a change: gives the item in `way`, whose key has `key_len` bytes, another value that fits.
    #[inline(always)]
    pub fn put_over(&self, way: usize, key_len: usize, value: &[u8]) {
        self.table.cells.put_over(self.number, way, key_len, value);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use alluvium_base::KeyHash;

    use super::*;

    /// A spot of a table with one bucket.
    fn spot(table: &InlineTable, tag: u16) -> Spot<'_> {
        table.spot(KeyHash::from_halves(0, u64::from(tag)))
    }

    fn put(table: &InlineTable, tag: u16) {
        let spot = spot(table, tag);
        spot.put(spot.empty_way().unwrap(), &tag.to_le_bytes(), &[tag as u8; 9]);
    }

    #[test]
    fn items_lie_at_home_where_they_can() {
        let table = InlineTable::new(1, 20).unwrap();
        let at_home = |way: usize, number: u16| (way * 65_536 / CELLS) as u16 + 1 + number;
        // Both belong in way 3; one has to go elsewhere, to the lowest empty way.
        put(&table, at_home(3, 0));
        put(&table, at_home(3, 1));
        let way = |tag: u16| spot(&table, tag).find(&tag.to_le_bytes()).unwrap().0;
        assert_eq!([0, 1].map(|number| way(at_home(3, number))), [3, 0]);
        // The cell's owner displaces it.
        put(&table, at_home(0, 0));
        assert_eq!([at_home(0, 0), at_home(3, 1)].map(way), [0, 1]);
        (1..10).for_each(|number| put(&table, at_home(11, number)));
        let all: Vec<u16> = spot(&table, 1).bucket().ways().map(|way| table.buckets[0].tag(way)).collect();
        assert_eq!(all.len(), CELLS);
        assert_eq!(spot(&table, 1).empty_way(), None);
        for tag in all {
            let (_, cell) = spot(&table, tag).find(&tag.to_le_bytes()).unwrap();
            assert_eq!(cell.parts(), Some((tag.to_le_bytes().to_vec(), vec![tag as u8; 9])));
            assert!(spot(&table, tag).find(&[0; 2]).is_none());
        }
        assert_eq!(way(at_home(11, 1)), 11);
    }
}
