//! Lim's Table 3.4: random gets from flash through the index, and what the index takes (§3.3.3).
//!
//! The thesis has 16 threads on three SSDs. Here one thread gets from a database, under one index after another of the
//! same tables.

use alluvium_bench::BenchError;

use super::lim_ect::{DENSE, FENCES, FRAGMENTS, SPARSE, Variant, measure};
use super::{Axis, Figure, Panel, Published, Scale, Series};

const VARIANTS: [(Variant, &str); 4] =
    [(FENCES, "fences"), (SPARSE, "sparse"), (DENSE, "dense"), (FRAGMENTS, "fragments")];
const VALUE_BYTES: usize = 100;
/// Gets a second of ECT, and its bits per key.
const DENSE_GETS_PER_S: f64 = 64_020.0;
const DENSE_BITS: f64 = 2.51;

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let variants = VARIANTS.map(|(variant, _)| variant);
    let measured = measure(scale, "lim-table-3.4", (scale.stored_items_max, VALUE_BYTES), &variants)?;
    let mut published = Vec::new();
    for ((variant, name), measured) in VARIANTS.iter().zip(&measured) {
        let is_published = matches!(variant.filter, alluvium_model::Filter::None) && *name == "dense";
        let number = |what: &str, theirs: f64, ours: f64| match is_published {
            true => Published::new(format!("{name}_{what}"), theirs, ours),
            false => Published::ours(format!("{name}_{what}"), ours),
        };
        published.push(number("bits_per_key", DENSE_BITS, measured.bits_per_item));
        published.push(number("gets_per_s", DENSE_GETS_PER_S, measured.gets_per_s));
        published.push(Published::ours(format!("{name}_reads_per_present"), measured.reads_per_present));
        published.push(Published::ours(format!("{name}_reads_per_absent"), measured.reads_per_absent));
        published
            .push(Published::ours(format!("{name}_change_bytes_written"), measured.change_bytes_written));
        published.push(Published::ours(format!("{name}_change_s"), measured.change_s));
    }
    let points = |at: usize| vec![(measured[at].bits_per_item, measured[at].gets_per_s / 1e3)];
    let series = (0..VARIANTS.len()).map(|at| Series::measurement(VARIANTS[at].0.name, points(at)));
    Ok(Figure {
        id: "lim-table-3.4",
        title: "Gets from flash, and bits per key of the index",
        source: "Lim's thesis, Table 3.4 and §3.3.3: 16 million items, 16 threads; here one thread",
        published,
        panels: vec![Panel {
            x: Axis::linear("bits per key"),
            y: Axis::linear("thousand gets of present keys a second"),
            series: series.collect(),
        }],
    })
}
