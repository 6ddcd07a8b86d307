//! Wu's Figure 4.5: bytes of the buckets of a table, from the fullest to the emptiest, before items are moved.

use alluvium_bench::BenchError;

use super::wu::loads;
use super::{Axis, Figure, Panel, Scale};

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let series = loads(scale, |(before, _)| before);
    Ok(Figure {
        id: "wu-4.5",
        title: "Buckets before balancing",
        source: "Wu's thesis, Figure 4.5: 8192 buckets, items of 1 to 2 x mean bytes, 95 % full",
        panels: vec![Panel {
            x: Axis::linear("bucket, by bytes"),
            y: Axis::linear("bytes in the bucket"),
            series,
        }],
        published: Vec::new(),
    })
}
