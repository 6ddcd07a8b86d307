//! Lim's Figure 3.6: bits per key of sparse tries, by items in a block, from the indexes of a database.
//!
//! The thesis computes the size of one trie of 256 keys. Here each point is a database, whose index also contains the
//! buckets' positions and, as items have any size, the first rank of each page. One load serves all curves: the plan
//! changes only the index, which is made from the pages as they are.

use alluvium_bench::BenchError;

use super::lim_ect::{DENSE, FENCES, FRAGMENTS, Measured, SPARSE, Variant, measure};
use super::{Axis, Figure, Panel, Published, Scale, Series};

/// Maximum items of each of the databases.
const ITEMS_MAX: u64 = 400_000;
/// Bytes of values, from some four items on a page to over a hundred.
const VALUES_BYTES: [usize; 6] = [1_000, 490, 234, 106, 44, 12];
const VARIANTS: [Variant; 4] = [FENCES, SPARSE, DENSE, FRAGMENTS];
/// The place of the sparse and of the dense trie among them.
const SPARSE_AT: usize = 1;
const DENSE_AT: usize = 2;
/// Bits per key of 16 million items (§3.3.3), and those below which tries are with 8 items and more in a block.
const DENSE_BITS: f64 = 2.51;
const SPARSE_BITS_AT_8: f64 = 1.0;

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let items = scale.stored_items_max.min(ITEMS_MAX);
    let mut databases: Vec<Vec<Measured>> = Vec::new();
    for value_bytes in VALUES_BYTES {
        let name = format!("lim-3.6-{value_bytes}");
        databases.push(measure(scale, &name, (items, value_bytes), &VARIANTS)?);
    }
    let curve = |at: usize, of: fn(&Measured) -> f64| {
        let points = databases.iter().map(|database| (database[at].items_per_page, of(&database[at])));
        Series::measurement(VARIANTS[at].name, points.collect())
    };
    let curves = |of: fn(&Measured) -> f64| (0..VARIANTS.len()).map(|at| curve(at, of)).collect();
    let of_eight = &databases[2];
    let all = databases.iter().flat_map(|database| &database[1..]);
    let change_bytes = all.map(|measured| measured.change_bytes_written).fold(0.0, f64::max);
    let items_per_page = Axis::logarithmic("items per page");
    Ok(Figure {
        id: "lim-3.6",
        title: "Bits per key of indexes, by items per page",
        source: "Lim's thesis, Figure 3.6: tries of 256 keys; here the indexes of a database, all included",
        published: vec![
            Published::new("dense_bits_per_key", DENSE_BITS, of_last(&databases, DENSE_AT)),
            Published::new(
                "sparse_bits_per_key_max_at_8",
                SPARSE_BITS_AT_8,
                of_eight[SPARSE_AT].bits_per_item,
            ),
            Published::ours("items_per_page_of_these", of_eight[SPARSE_AT].items_per_page),
            Published::ours("bytes_written_by_a_change_of_index_max", change_bytes),
        ],
        panels: vec![
            Panel {
                x: items_per_page,
                y: Axis::linear("bits per key"),
                series: curves(|measured| measured.bits_per_item),
            },
            Panel {
                x: items_per_page,
                y: Axis::linear("reads per get of an absent key"),
                series: curves(|measured| measured.reads_per_absent),
            },
        ],
    })
}

/// Bits per key with the smallest items, where the list of page starts takes least.
fn of_last(databases: &[Vec<Measured>], at: usize) -> f64 {
    databases.last().map_or(0.0, |database| database[at].bits_per_item)
}
