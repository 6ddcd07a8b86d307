//! Wu's Figure 5.1: how much faster memory is written without flushes, by the size of the working set.

use alluvium_bench::BenchError;

use super::flushes::{Way, Writes};
use super::{Axis, Figure, Panel, Published, Scale, Series};

const VALUE_BYTES: usize = 1 << 10;
/// Working sets in MiB, as far as the scale allows.
const WORKING_SETS_MIB: [usize; 9] = [1, 4, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10];

const FLUSHES: [(Way, &str); 2] = [(Way::OrderedFlush, "CLFLUSH"), (Way::Flush, "CLWB")];

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let mut points = FLUSHES.map(|_| Vec::new());
    for mebibytes in WORKING_SETS_MIB {
        if points[0].len() > 1 && (mebibytes as u64) << 20 > Writes::bytes_max(scale) {
            break;
        }
        let mut writes = Writes::new(scale, mebibytes << 20)?;
        let plain = writes.per_s(Way::Plain, VALUE_BYTES);
        for ((way, _), points) in FLUSHES.into_iter().zip(&mut points) {
            points.push((mebibytes as f64, plain / writes.per_s(way, VALUE_BYTES)));
        }
    }
    let mut published = Vec::new();
    for ((way, name), points) in FLUSHES.into_iter().zip(&points) {
        let few = points.iter().take(2).map(|point| point.1).fold(0.0, f64::max);
        let most = points.last().map_or(0.0, |point| point.1);
        // The thesis's processor has the one only.
        let stated = |number: f64| (way == Way::OrderedFlush).then_some(number);
        for (size, stated, ours) in [("few", stated(18.0), few), ("most", stated(6.0), most)] {
            let name = format!("plain_to_{}_{size}_megabytes", name.to_lowercase());
            published.push(Published { name, published: stated, ours });
        }
    }
    let curves = FLUSHES.into_iter().zip(points);
    Ok(Figure {
        id: "wu-5.1",
        title: "Writes without flushes, by those with flushes",
        source: "Wu's thesis, Figure 5.1: 1-KB writes, 1 MB to 64 GB of DRAM; here as much as the scale allows",
        published,
        panels: vec![Panel {
            x: Axis::logarithmic("working set in MiB"),
            y: Axis::linear("writes a second without flushes, by those with"),
            series: curves.map(|((_, name), points)| Series::measurement(name, points)).collect(),
        }],
    })
}
