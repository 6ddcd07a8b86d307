//! Young items and the sorted run, merged into one ascending stream (SILT Table 3).

use std::cmp::Ordering;

use alluvium_base::KeyHash;

use super::young::YoungRange;
use crate::error::Result;
use crate::item::EncodedItem;
use crate::level::SortedTable;
use crate::table::{SectionRange, SectionScanner};

/// A scanner of the items of the sorted run whose leading hash bits lie in `low..=high`, which reads ahead in pieces of
/// `read_bytes`; `None` without tables.
pub(crate) fn scan_sorted(
    sorted: &[SortedTable],
    low: u64,
    high: u64,
    read_bytes: usize,
) -> Result<Option<SectionScanner>> {
    let Some(first) = sorted.first() else { return Ok(None) };
    let wanted = |table: &SortedTable| SectionRange {
        section: table.section.clone(),
        low: table.low.max(low),
        high: table.high.min(high),
    };
    let ranges: Vec<_> = sorted.iter().map(wanted).collect();
    Ok(Some(SectionScanner::chain_ranges(first.file.storage(), &ranges, read_bytes)?))
}

/// Calls `visit` with the newest item of every key among `young` and the `sorted` items, in (hash, key) order. A young
/// item hides the sorted one of its key. Tombstones are visited too: the caller knows whether anything older lies
/// below. `read_sorted` is called with every sorted item, hidden or not.
pub(crate) fn for_each_merged(
    mut young: YoungRange<'_>,
    mut sorted: Option<SectionScanner>,
    mut read_sorted: impl FnMut(&EncodedItem<'_>),
    mut visit: impl FnMut(KeyHash, &EncodedItem<'_>) -> Result<()>,
) -> Result<()> {
    while let Some(scanner) = &mut sorted
        && scanner.advance()?
    {
        let (hash, item) = scanner.current_encoded().expect("it advanced to an item");
        read_sorted(&item);
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
                    break;
                }
                Ordering::Greater => {
                    visit(hash, &item)?;
                    break;
                }
            }
        }
    }
    while let Some((hash, item)) = young.peek() {
        visit(hash, &item)?;
        young.advance();
    }
    Ok(())
}
