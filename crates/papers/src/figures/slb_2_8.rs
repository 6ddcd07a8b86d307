//! Wu's Figure 2.8: gets of hash tables, whose walks are short.

use alluvium_bench::BenchError;
use alluvium_bench::index::slb::beside_items::BesideItems;
use alluvium_bench::index::slb::chained::Chained;
use alluvium_index::cuckoo::CuckooTable;

use super::slb::gets;
use super::{Figure, Scale};

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let cuckoo = gets::<BesideItems<CuckooTable>>("cuckoo", scale);
    let chained = gets::<Chained<1>>("chained", scale);
    let published = vec![chained.most("chained_gain_max", 1.28), chained.least("chained_gain_min", 1.0)];
    Ok(Figure {
        id: "slb-2.8",
        title: "Lookaside buffer: cuckoo and chained hash tables",
        source: "Wu's thesis, Figure 2.8: gets, Zipf 0.99, chains of 1; here one thread, cuckoo tags of 15 bits",
        panels: vec![cuckoo.panel, chained.panel],
        published,
    })
}
