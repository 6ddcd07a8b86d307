//! Wu's Figure 5.8: throughput of caches in a file with Facebook's traces.
//!
//! The traces are not public. Requests have the mix of Table 5.1; keys are popular by Zipf's law, with the exponent
//! that gives as many of them four fifths of the requests as in Figure 3.1, and removed keys are any. Of SYS and VAR
//! the thesis states no such share: both have 0.99, and SYS a tenth of the keys, since it is said to be small. Values
//! have 100 bytes, those of USR 2. The caches begin with all items.

use alluvium_bench::BenchError;

use super::nvmcached::{Caches, Files, Kind};
use super::replay::draw_requests;
use super::traces::{NAMES, Trace};
use super::{Axis, Figure, Panel, Published, Scale, Series};

/// NVMcached to MC-NVM, as the text states it; "almost identical" is 1.
const GAINS: [(&str, f64); 5] = [("APP", 1.0), ("ETC", 1.0), ("SYS", 2.0), ("USR", 1.0), ("VAR", 2.85)];

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let files = Files::new(scale, "wu-5.8")?;
    let mut points = Kind::ALL.map(|_| Vec::new());
    let mut published = Vec::new();
    let mut traces = NAMES.map(Trace::named);
    traces.sort_by(|one, other| one.mix.sets.total_cmp(&other.mix.sets));
    for trace in traces {
        let caches = Caches::new(scale, &files, trace.value_bytes);
        let keys = ((f64::from(caches.keys) * trace.keys_share) as u32).max(1);
        let requests = draw_requests(keys, trace.skew(keys), trace.mix, caches.requests_len(), scale.seed)?;
        let mut rates = Vec::new();
        for (kind, points) in Kind::ALL.into_iter().zip(&mut points) {
            let rate = caches.rates(kind, &[(&requests, 1)])?[0];
            points.push((trace.mix.sets, rate));
            rates.push(rate);
        }
        let stated = GAINS.iter().find(|(name, _)| *name == trace.name).map(|(_, gain)| *gain);
        let name = trace.name.to_lowercase();
        published.push(Published {
            name: format!("{name}_to_each_set_flushed"),
            published: stated,
            ours: rates[1] / rates[3],
        });
        let with_write_cache = rates[2] / rates[3];
        published
            .push(Published::ours(format!("{name}_with_write_cache_to_each_set_flushed"), with_write_cache));
        published.push(Published::ours(format!("{name}_to_in_memory"), rates[1] / rates[0]));
    }
    let curves = Kind::ALL.into_iter().zip(points);
    Ok(Figure {
        id: "wu-5.8",
        title: "Throughput of caches in a file by trace",
        source: "Wu's thesis, Figure 5.8: traces; here requests in the mix of Table 5.1 (USR, ETC, APP, SYS, VAR)",
        panels: vec![Panel {
            x: Axis::linear("percent sets of the trace: USR, ETC, APP, SYS, VAR"),
            y: Axis::linear("million requests a second of processor time"),
            series: curves.map(|(kind, points)| Series::measurement(kind.name(), points)).collect(),
        }],
        published,
    })
}
