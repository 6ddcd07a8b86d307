//! Page and slot fences compared with a binary search over the pages.

use alluvium_base::checksum::checksum64;
use alluvium_index::fences::{PageFences, PageFencesBuilder, SlotFences, SlotFencesBuilder};
use proptest::prelude::*;

/// A table: its range of hashes and the sorted hashes of each page.
#[derive(Clone, Debug)]
struct Table {
    low: u64,
    high: u64,
    pages: Vec<Vec<u64>>,
}

fn tables() -> impl Strategy<Value = Table> {
    let hash = prop_oneof![any::<u64>(), (0u64..5, 0u64..30).prop_map(|(c, o)| (c << 61) + o)];
    (
        prop::collection::vec(hash, 1..300),
        any::<(u64, u64)>(),
        0u32..64,
        prop::collection::vec(1usize..20, 1..10),
    )
        .prop_map(|(hashes, ends, shift, sizes)| {
            let low = ends.0.min(ends.1);
            let high = low + ((ends.0.max(ends.1) - low) >> shift);
            let span = u128::from(high - low) + 1;
            let mut hashes: Vec<u64> =
                hashes.into_iter().map(|h| low + (u128::from(h) % span) as u64).collect();
            hashes.sort_unstable();
            let mut pages = Vec::new();
            let mut rest = hashes.as_slice();
            for size in sizes.into_iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (page, after) = rest.split_at(size.min(rest.len()));
                pages.push(page.to_vec());
                rest = after;
            }
            Table { low, high, pages }
        })
}

fn build(table: &Table, pages_expected: u64, resolution_bits: u32, ends_known: bool) -> PageFences {
    let mut builder = PageFencesBuilder::new(table.low, table.high, pages_expected, resolution_bits);
    for (index, page) in table.pages.iter().enumerate() {
        match index.checked_sub(1).filter(|_| ends_known) {
            Some(before) => builder.push_page_after(*table.pages[before].last().unwrap(), page[0]),
            None => builder.push_page(page[0]),
        }
    }
    assert_eq!(builder.pages(), table.pages.len() as u64);
    builder.finish()
}

fn check(fences: &PageFences, table: &Table) {
    assert_eq!(fences.pages(), table.pages.len() as u64);
    for (page, hashes) in table.pages.iter().enumerate() {
        for &hash in hashes {
            let range = fences.lookup(hash).unwrap();
            assert!((range.first..=range.last).contains(&(page as u64)), "page {page}, found {range:?}");
            assert!(range.last < fences.pages());
            assert!(!fences.is_aligned() || range.pages() == 1);
        }
    }
    for hash in [0, table.low, table.high, u64::MAX] {
        assert!(fences.lookup(hash).unwrap().last < fences.pages());
    }
}

proptest! {
    #[test]
    fn a_present_key_lies_in_the_pages_found(
        table in tables(), expected in 0u64..400, resolution in 0u32..12, ends_known: bool,
    ) {
        let fences = build(&table, expected, resolution, ends_known);
        check(&fences, &table);
        let again = PageFences::from_bytes(&fences.to_bytes()).unwrap();
        check(&again, &table);
        prop_assert_eq!(again, fences);
    }

    #[test]
    fn damaged_bytes_are_refused(table in tables(), place: prop::sample::Index, flip in 1u8..) {
        let mut bytes = build(&table, 10, 8, true).to_bytes();
        let place = place.index(bytes.len());
        bytes[place] ^= flip;
        prop_assert!(PageFences::from_bytes(&bytes).is_err());
        prop_assert!(PageFences::from_bytes(&bytes[..place]).is_err());
    }

    #[test]
    fn damage_under_right_checksums_never_panics(
        table in tables(), place: prop::sample::Index, flip in 1u8.., hashes: [u64; 8],
    ) {
        let mut bytes = build(&table, 10, 8, true).to_bytes();
        let place = place.index(bytes.len());
        bytes[place] ^= flip;
        // The list starts after the kind, three words of cells, a flag and its length.
        seal(&mut bytes, 48);
        if let Ok(fences) = PageFences::from_bytes(&bytes) {
            for hash in hashes {
                if let Some(range) = fences.lookup(hash) {
                    prop_assert!(range.first <= range.last && range.last < fences.pages());
                }
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        prop_assert!(PageFences::from_bytes(&bytes).is_err());
        prop_assert!(SlotFences::from_bytes(&bytes).is_err());
    }

    #[test]
    fn slots_lead_to_the_last_page_that_starts_before(steps in prop::collection::vec(0u64..100, 0..300), far: u64) {
        let mut builder = SlotFencesBuilder::new();
        let mut starts = Vec::new();
        for step in steps {
            starts.push(starts.last().unwrap_or(&0) + step);
            builder.push_page(*starts.last().unwrap());
        }
        let fences = builder.finish();
        let fences = SlotFences::from_bytes(&fences.to_bytes()).unwrap();
        prop_assert_eq!(fences.pages(), starts.len() as u64);
        for slot in (0..starts.last().unwrap_or(&0) + 3).chain([far]) {
            let expected = starts.partition_point(|start| *start <= slot).checked_sub(1);
            prop_assert_eq!(fences.page_of(slot), expected.map(|page| page as u64));
        }
        for (page, start) in starts.iter().enumerate() {
            prop_assert_eq!(fences.first_slot(page as u64), Some(*start));
        }
    }
}

/// Corrects the checksums of the list that starts at `list` and of the whole.
fn seal(bytes: &mut [u8], list: usize) {
    let whole = bytes.len() - 8;
    for (start, end) in [(list, whole - 8), (0, whole)] {
        let kind = u64::from_le_bytes(bytes[start..start + 8].try_into().unwrap());
        let checksum = checksum64(&bytes[start..end], kind);
        bytes[end..end + 8].copy_from_slice(&checksum.to_le_bytes());
    }
}

#[test]
fn no_pages_give_no_range() {
    let fences = PageFences::from_boundaries([], 8);
    assert_eq!(fences.lookup(7), None);
    assert_eq!(PageFences::from_bytes(&fences.to_bytes()), Ok(fences));
    assert_eq!(SlotFencesBuilder::new().finish().page_of(0), None);
}

#[test]
fn pages_that_end_between_cells_need_one_page_each() {
    let hashes: Vec<u64> = (0..20_000u64).map(|index| index.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let mut hashes = hashes;
    hashes.sort_unstable();
    let builder = PageFencesBuilder::new(0, u64::MAX, 625, 8);
    let mut table = Table { low: 0, high: u64::MAX, pages: vec![vec![]] };
    for hash in hashes {
        let page = table.pages.last_mut().unwrap();
        let splits = page.last().is_none_or(|last| builder.cell_of(*last) < builder.cell_of(hash));
        if page.len() >= 32 && splits {
            table.pages.push(vec![hash]);
        } else {
            page.push(hash);
        }
    }
    let fences = build(&table, 625, 8, true);
    assert!(fences.is_aligned());
    check(&fences, &table);
    let bits_per_key = fences.memory_bytes() as f64 * 8.0 / 20_000.0;
    assert!(bits_per_key < 0.5, "{bits_per_key}");
}
