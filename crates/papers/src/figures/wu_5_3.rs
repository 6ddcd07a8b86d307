//! Wu's Figure 5.3: writes with a checksum or with flushes, by the size of the value, in two working sets.

use alluvium_bench::BenchError;

use super::flushes::{Way, Writes};
use super::{Axis, Figure, Panel, Published, Scale, Series};

const VALUE_BYTES: [usize; 6] = [64, 128, 256, 512, 1 << 10, 4 << 10];
const SMALL_BYTES: usize = 16 << 20;
/// The working set of the thesis that does not fit in the processor's cache, as far as the scale allows.
const LARGE_BYTES: u64 = 4 << 30;
const WAYS: [(Way, &str); 4] = [
    (Way::Plain, "plain"),
    (Way::Checksum, "with a checksum"),
    (Way::OrderedFlush, "flushed by CLFLUSH"),
    (Way::Flush, "flushed by CLWB"),
];

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let large = LARGE_BYTES.min(Writes::bytes_max(scale)).max(SMALL_BYTES as u64) as usize;
    let (mut panels, mut published) = (Vec::new(), Vec::new());
    for (name, bytes) in [("small", SMALL_BYTES), ("large", large)] {
        let mut writes = Writes::new(scale, bytes)?;
        let mut rates = WAYS.map(|_| Vec::new());
        for value_bytes in VALUE_BYTES {
            for ((way, _), rates) in WAYS.into_iter().zip(&mut rates) {
                rates.push((value_bytes as f64, writes.per_s(way, value_bytes) / 1e6));
            }
        }
        let bounds = |one: usize, other: usize| {
            let ratios = rates[one].iter().zip(&rates[other]).map(|(one, other)| one.1 / other.1);
            ratios.fold((f64::INFINITY, 0.0_f64), |(least, most), ratio| (least.min(ratio), most.max(ratio)))
        };
        let [plain, checksum, by_clflush, by_clwb] = [0, 1, 2, 3];
        if name == "small" {
            let (least, most) = bounds(checksum, plain);
            published.push(Published::new("small_checksum_to_plain_min", 0.3, least));
            published.push(Published::new("small_checksum_to_plain_max", 0.7, most));
            let least = bounds(checksum, by_clflush).0;
            published.push(Published::new("small_checksum_to_clflush_min", 5.0, least));
            published.push(Published::ours("small_checksum_to_clwb_min", bounds(checksum, by_clwb).0));
        } else {
            let most = bounds(by_clflush, checksum).1;
            published.push(Published::new("large_clflush_to_checksum_max", 0.25, most));
            published.push(Published::new("large_clflush_to_plain_max", 0.25, bounds(by_clflush, plain).1));
            published.push(Published::ours("large_clwb_to_plain_max", bounds(by_clwb, plain).1));
        }
        panels.push(Panel {
            x: Axis::logarithmic("bytes of a value"),
            y: Axis::logarithmic("million writes a second of processor time"),
            series: WAYS
                .into_iter()
                .zip(rates)
                .map(|((_, way), points)| Series::measurement(format!("{way}, {} MiB", bytes >> 20), points))
                .collect(),
        });
    }
    Ok(Figure {
        id: "wu-5.3",
        title: "Writes with checksums and with flushes",
        source: "Wu's thesis, Figure 5.3: CRC-32, working sets of 16 MB and 4 GB; here XXH3, and as much as fits",
        panels,
        published,
    })
}
