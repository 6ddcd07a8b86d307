//! Wu's Figure 2.11: gets and sets of a chained hash table. Every set moves its item, so it is an update of the buffer.
//!
//! In the thesis a few sets cost a third of the throughput, since a set takes the lock of its chain. Here a set is a
//! handful of stores, and brings its item to the front of the chain: with 100,000 keys and 5 % sets, 0.89 of the gets
//! end at the first node instead of 0.56, which the processor learns to predict. So throughput even increases: to 1.4
//! to 1.6 times that of only gets there, and to 1.1 times at 6.4 million keys.

use alluvium_bench::BenchError;
use alluvium_bench::index::slb::contest::mixed_gain;

use super::slb::curves;
use super::{Figure, Published, Scale};

/// One operation in this many is a set: none, 5 % and 50 %.
const MIXES: [(&str, usize); 3] = [("only gets", usize::MAX), ("5 % sets", 20), ("50 % sets", 2)];

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let [none, few, many] = MIXES.map(|(name, sets_every)| {
        curves(name, scale, |keys, requests, tables| {
            tables.iter().map(|&table| mixed_gain(keys, requests, table, sets_every)).collect()
        })
    });
    let published = vec![
        Published::new("direct_5_to_0_percent_sets", 0.69, few.direct_first() / none.direct_first()),
        Published::new("direct_50_to_5_percent_sets", 0.59, many.direct_first() / few.direct_first()),
        few.most("gain_max_5_percent_sets", 1.28),
        many.most("gain_max_50_percent_sets", 1.0),
    ];
    Ok(Figure {
        id: "slb-2.11",
        title: "Lookaside buffer: chained hash table, gets and sets",
        source: "Wu's thesis, Figure 2.11: Zipf 0.99, chains of 1; here one thread, and no locks",
        panels: vec![none.panel, few.panel, many.panel],
        published,
    })
}
