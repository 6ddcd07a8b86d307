//! SILT's Figure 8: rewrites and reads against memory, for different sizes of the HashStores.

use alluvium_bench::BenchError;

use super::{Axis, Figure, Panel, Published, Scale, Series};
use crate::models::SiltClosedForm;

pub fn draw(_: &Scale) -> Result<Figure, BenchError> {
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    for step in 2..=60 {
        let merge_items = f64::from(step) * 250e3;
        let cost = SiltClosedForm { merge_items, ..SiltClosedForm::default() }.cost()?;
        writes.push((cost.bytes_per_item(), cost.write_amplification()));
        reads.push((cost.bytes_per_item(), cost.reads_per_get));
    }
    let example = SiltClosedForm::default().cost()?;
    let memory = Axis::linear("memory, bytes per item");
    Ok(Figure {
        id: "silt-8",
        title: "SILT: rewrites and reads against memory",
        source: "SILT (SOSP 2011), Figure 8: 100 million items, 4 instances, tags of 15 bits, d varied",
        panels: vec![
            Panel {
                x: memory,
                y: Axis::linear("write amplification"),
                series: vec![Series::model("Eq. 4 and 7", writes)],
            },
            Panel {
                x: memory,
                y: Axis::linear("reads per get"),
                series: vec![Series::model("Eq. 6 and 7", reads)],
            },
        ],
        published: vec![
            Published::new("write_amplification", 5.4, example.write_amplification()),
            Published::new("reads_per_get", 1.008, example.reads_per_get),
            Published::new("bytes_per_item", 0.73, example.bytes_per_item()),
        ],
    })
}
