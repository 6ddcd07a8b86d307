//! Young items and ascending sequences of tables, merged into one ascending stream (SILT Table 3).

use std::cmp::Ordering;

use alluvium_base::KeyHash;
use alluvium_io::Storage;
use smallvec::SmallVec;

use super::young::YoungRange;
use crate::error::Result;
use crate::item::EncodedItem;
use crate::table::{SectionRange, SectionScanner};

/// Scanners of these sequences of parts of tables, each with read-ahead in pieces of `read_bytes`.
pub(crate) fn scan_streams(
    storage: &dyn Storage,
    streams: &[Vec<SectionRange>],
    read_bytes: usize,
) -> Result<Vec<SectionScanner>> {
    let scan = |ranges: &Vec<SectionRange>| SectionScanner::chain_ranges(storage, ranges, read_bytes);
    Ok(streams.iter().map(scan).collect::<std::result::Result<_, _>>()?)
}

/// Calls `visit` with the newest item of every key among `young` and the items of `scanners`, in (hash, key) order. A
/// young item hides all others of its key, and items of an earlier scanner hide those of later ones. Tombstones are
/// visited too: the caller knows whether anything older is below. Calls `read` with every item of a scanner, hidden or
/// not, and the scanner's number.
pub(crate) fn for_each_merged(
    mut young: YoungRange<'_>,
    scanners: &mut [SectionScanner],
    mut read: impl FnMut(usize, &EncodedItem<'_>),
    mut visit: impl FnMut(KeyHash, &EncodedItem<'_>) -> Result<()>,
) -> Result<()> {
    let mut visit_old = |hash: KeyHash, item: &EncodedItem<'_>| {
        loop {
            match young.compare_front(hash, item.item.key) {
                Ordering::Less => {
                    let (young_hash, young_item) = young.peek().expect("it compared less");
                    visit(young_hash, &young_item)?;
                    young.advance();
                }
                Ordering::Equal => {
                    let (young_hash, young_item) = young.peek().expect("it compared equal");
                    visit(young_hash, &young_item)?;
                    young.advance();
                    return Ok(());
                }
                Ordering::Greater => return visit(hash, item),
            }
        }
    };
    match scanners {
        [] => {}
        [scanner] => {
            while scanner.advance()? {
                let (hash, item) = scanner.current_encoded().expect("it advanced to an item");
                read(0, &item);
                visit_old(hash, &item)?;
            }
        }
        scanners => merge_scanners(scanners, &mut read, &mut visit_old)?,
    }
    while let Some((hash, item)) = young.peek() {
        visit(hash, &item)?;
        young.advance();
    }
    Ok(())
}

/// Items in the order of (hash, key), one after the other.
pub(crate) trait Ascending {
    /// Moves to the next item, initially to the first; returns `false` after the last.
    fn advance(&mut self) -> Result<bool>;

    /// The current item.
    fn current_encoded(&self) -> Option<(KeyHash, EncodedItem<'_>)>;
}

impl Ascending for SectionScanner {
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        Ok(Self::advance(self)?)
    }

    #[inline]
    fn current_encoded(&self) -> Option<(KeyHash, EncodedItem<'_>)> {
        Self::current_encoded(self)
    }
}

/// Numbers of scanners whose current items have one hash; rarely more than a few.
pub(crate) type Tied = SmallVec<[usize; 8]>;

/// Merges the newest item of every key among the items of several scanners, the youngest scanner first.
fn merge_scanners(
    scanners: &mut [SectionScanner],
    read: &mut impl FnMut(usize, &EncodedItem<'_>),
    visit: &mut impl FnMut(KeyHash, &EncodedItem<'_>) -> Result<()>,
) -> Result<()> {
    let mut heads: Vec<Option<KeyHash>> = vec![None; scanners.len()];
    for (number, head) in heads.iter_mut().enumerate() {
        *head = step(&mut scanners[number])?;
    }
    let mut tied = Tied::new();
    while let Some(first) = heads.iter().flatten().min().copied() {
        tied.clear();
        tied.extend((0..heads.len()).filter(|&number| heads[number] == Some(first)));
        if tied.len() > 1 {
            keep_first_key(scanners, &mut tied);
        }
        for &number in &tied {
            let (_, item) = scanners[number].current_encoded().expect("it stands on an item");
            read(number, &item);
        }
        // The youngest of the scanners that have this key.
        let (_, item) = scanners[tied[0]].current_encoded().expect("it stands on an item");
        visit(first, &item)?;
        for &number in &tied {
            heads[number] = step(&mut scanners[number])?;
        }
    }
    Ok(())
}

/// Moves the scanner to its next item, and returns the hash.
pub(crate) fn step(scanner: &mut impl Ascending) -> Result<Option<KeyHash>> {
    Ok(if scanner.advance()? { scanner.current_encoded().map(|(hash, _)| hash) } else { None })
}

/// Keeps, among scanners whose current items have one hash, those whose item has the first key, in their order.
pub(crate) fn keep_first_key(scanners: &[impl Ascending], tied: &mut Tied) {
    let key = |number: usize| scanners[number].current_encoded().map(|(_, item)| item.item.key);
    if let Some(first) = tied.iter().filter_map(|&number| key(number)).min() {
        tied.retain(|number| key(*number) == Some(first));
    }
}
