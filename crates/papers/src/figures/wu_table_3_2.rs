//! Wu's Table 3.2: what LZ4 makes of values, one by one and together in containers.
//!
//! The thesis compresses tweets, which are not public any more, and records of places with random fields in Google's
//! Protocol Buffers, 100.9 bytes on average. Here places, sessions and metrics are generated; places and sessions are
//! JSON, whose field names repeat.

use alluvium_bench::BenchError;
use alluvium_bench::cache::documents::Documents;
use lz4_flex::block::compress;

use super::replay::Values;
use super::{Axis, Figure, Panel, Published, Scale, Series};

/// Bytes of a container, and the thesis's ratio for places.
const CONTAINERS: [(usize, f64); 5] =
    [(256, 1.28), (512, 1.45), (1 << 10, 1.60), (2 << 10, 1.70), (4 << 10, 1.77)];
/// The thesis's ratio for places one by one.
const SINGLE: f64 = 1.28;
const KINDS: [(&str, Documents); 3] =
    [("places", Documents::Places), ("sessions", Documents::Session), ("metrics", Documents::Metrics)];

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let count = (scale.simulated_keys_max / 50).clamp(10_000, 1 << 22) as u32;
    let (mut series, mut published) = (Vec::new(), Vec::new());
    for (name, documents) in KINDS {
        let values = Values::documents(documents, count)?;
        let mut buffer = Vec::new();
        let mut container = Vec::new();
        let mut ratio = |container_bytes: usize| {
            let (mut before, mut after) = (0, 0);
            for number in 0..count {
                let value = values.of(number, &mut buffer);
                // A container has as many values as fit, and at least one.
                if !container.is_empty() && container.len() + value.len() > container_bytes {
                    (before, after) = (before + container.len(), after + compress(&container).len());
                    container.clear();
                }
                container.extend_from_slice(value);
            }
            (before, after) = (before + container.len(), after + compress(&container).len());
            container.clear();
            before as f64 / after.max(1) as f64
        };
        let single = ratio(0);
        let points: Vec<_> = CONTAINERS.iter().map(|&(bytes, _)| (bytes as f64, ratio(bytes))).collect();
        if name == "places" {
            published.push(Published::new("places_single_ratio", SINGLE, single));
            for (&(bytes, stated), (_, ours)) in CONTAINERS.iter().zip(&points) {
                published.push(Published::new(format!("places_{bytes}_ratio"), stated, *ours));
            }
        } else {
            published.push(Published::ours(format!("{name}_single_ratio"), single));
            published.push(Published::ours(format!("{name}_2048_ratio"), points[3].1));
        }
        let mean = (values.payload_bytes_mean() - alluvium_bench::cache::documents::KEY_BYTES) as f64;
        let single = std::iter::once((mean.min(CONTAINERS[0].0 as f64 - 1.0), single));
        series.push(Series::measurement(name, single.chain(points).collect()));
    }
    Ok(Figure {
        id: "wu-table-3.2",
        title: "Compression by size of the container",
        source: "Wu's thesis, Table 3.2: LZ4; here generated documents, single values at their size; no tweets",
        panels: vec![Panel {
            x: Axis::logarithmic("bytes of a container"),
            y: Axis::linear("bytes before compression, by those after it"),
            series,
        }],
        published,
    })
}
