//! Wu's Figure 5.1: how much faster memory is written without flushes, by the size of the working set.

use alluvium_bench::BenchError;

use super::flushes::{Way, Writes};
use super::{Axis, Figure, Panel, Published, Scale, Series};

const VALUE_BYTES: usize = 1 << 10;
/// Working sets in MiB, as far as the scale allows.
const WORKING_SETS_MIB: [usize; 9] = [1, 4, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10];

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let mut points = Vec::new();
    for mebibytes in WORKING_SETS_MIB {
        if points.len() > 1 && (mebibytes as u64) << 20 > Writes::bytes_max(scale) {
            break;
        }
        let mut writes = Writes::new(scale, mebibytes << 20)?;
        let ratio = writes.per_s(Way::Plain, VALUE_BYTES) / writes.per_s(Way::Flush, VALUE_BYTES);
        points.push((mebibytes as f64, ratio));
    }
    let smallest = points.iter().take(2).map(|point| point.1).fold(0.0, f64::max);
    let largest = points.last().map_or(0.0, |point| point.1);
    Ok(Figure {
        id: "wu-5.1",
        title: "Writes without flushes, by those with flushes",
        source: "Wu's thesis, Figure 5.1: 1-KB writes, 1 MB to 64 GB of DRAM; here as much as the scale allows",
        published: vec![
            Published::new("plain_to_flushed_few_megabytes", 18.0, smallest),
            Published::new("plain_to_flushed_tens_of_gigabytes", 6.0, largest),
        ],
        panels: vec![Panel {
            x: Axis::logarithmic("working set in MiB"),
            y: Axis::linear("writes a second without flushes, by those with"),
            series: vec![Series::measurement("1 KiB", points)],
        }],
    })
}
