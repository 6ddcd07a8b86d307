//! Wu's Figure 4.7: bytes of the buckets after balancing; and the results of §4.2.4.2 for lookups, drawn for any share
//! of the buckets whose migrations are in memory.

use alluvium_bench::BenchError;

use super::wu::{loads, tables};
use super::{Axis, Figure, Panel, Published, Scale, Series};

/// Migrations of 1792 of 8192 buckets are in memory.
const PUBLISHED_SHARE: f64 = 1792.0 / 8192.0;

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let series = loads(scale, |(_, after)| after);
    let mut published = Vec::new();
    let mut reads = Vec::new();
    for (name, bytes_mean, table) in tables(scale) {
        let at = |share: f64| table.reads(&table.directory(share));
        let shares = (0..=20).map(|step| f64::from(step) / 40.0);
        reads.push(Series::measurement(name, shares.map(|share| (share, at(share))).collect()));
        if bytes_mean == 100 {
            published.push(Published::new("bucket_reads_per_lookup", 1.01, at(PUBLISHED_SHARE)));
            let directory = table.directory(PUBLISHED_SHARE);
            published.push(Published::new("remembered_bytes", 14_336.0, 8.0 * directory.remembered() as f64));
        }
    }
    Ok(Figure {
        id: "wu-4.7",
        title: "Buckets after balancing, and reads",
        source: "Wu's thesis, Figure 4.7 and §4.2.4.2; here groups of 64 buckets are balanced, and spares left out",
        panels: vec![
            Panel { x: Axis::linear("bucket, by bytes"), y: Axis::linear("bytes in the bucket"), series },
            Panel {
                x: Axis::linear("share of the buckets in memory"),
                y: Axis::linear("bucket reads per lookup"),
                series: reads,
            },
        ],
        published,
    })
}
