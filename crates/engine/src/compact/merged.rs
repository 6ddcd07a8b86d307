//! Young items and the sorted run, merged into one ascending stream (SILT Table 3).

use std::cmp::Ordering;

use alluvium_base::KeyHash;

use super::young::YoungItems;
use crate::error::Result;
use crate::item::EncodedItem;
use crate::level::SortedTable;
use crate::table::SectionScanner;

/// Calls `visit` with the newest item of every key whose leading hash bits lie in `low..=high`, in (hash, key) order.
/// A young item hides the sorted one of its key. Tombstones are visited too: the caller knows whether anything older
/// lies below. The sorted run is read in pieces of `read_bytes`.
pub(crate) fn for_each_merged(
    young: &YoungItems,
    sorted: &[SortedTable],
    low: u64,
    high: u64,
    read_bytes: usize,
    mut visit: impl FnMut(KeyHash, &EncodedItem<'_>) -> Result<()>,
) -> Result<()> {
    let mut young = young.range(low, high);
    for table in sorted {
        let (from, to) = (table.low.max(low), table.high.min(high));
        let start = KeyHash::from_halves(from, 0);
        let mut scanner = SectionScanner::seek(table.section.clone(), start, read_bytes)?;
        while let Some((hash, item)) = scanner.current_encoded() {
            if hash.high() > to {
                break;
            }
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
            scanner.advance()?;
        }
    }
    while let Some((hash, item)) = young.peek() {
        visit(hash, &item)?;
        young.advance();
    }
    Ok(())
}
