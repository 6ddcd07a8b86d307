//! Young items and the sorted run, merged into one ascending stream (SILT Table 3).

use std::cmp::Ordering;

use alluvium_base::KeyHash;

use super::young::YoungItems;
use crate::error::Result;
use crate::item::EncodedItem;
use crate::level::SortedTable;
use crate::table::{SectionRange, SectionScanner};

/// Calls `visit` with the newest item of every key whose leading hash bits lie in `low..=high`, in (hash, key) order.
/// A young item hides the sorted one of its key. Tombstones are visited too: the caller knows whether anything older
/// lies below. The sorted run is read ahead.
pub(crate) fn for_each_merged(
    young: &YoungItems,
    sorted: &[SortedTable],
    low: u64,
    high: u64,
    mut visit: impl FnMut(KeyHash, &EncodedItem<'_>) -> Result<()>,
) -> Result<()> {
    let mut young = young.range(low, high);
    let wanted = |table: &SortedTable| SectionRange {
        section: table.section.clone(),
        low: table.low.max(low),
        high: table.high.min(high),
    };
    let ranges: Vec<_> = sorted.iter().map(wanted).collect();
    let mut scanner = match sorted.first() {
        Some(table) => Some(SectionScanner::chain_ranges(table.file.storage(), &ranges)?),
        None => None,
    };
    while let Some(scanner) = &mut scanner
        && scanner.advance()?
    {
        let (hash, item) = scanner.current_encoded().expect("it advanced to an item");
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
