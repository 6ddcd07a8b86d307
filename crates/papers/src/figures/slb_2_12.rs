//! Wu's Figure 2.12: the key-value stores LMDB and MICA with 1, 2 and 4 buckets per chain.
//!
//! Here only MICA's store mode is measured. Its index always has one bucket per chain and a tenth more, and refuses
//! items that would make longer chains, so this reproduces Figure 2.12d. LMDB is a C library; its B+-tree is covered by
//! Figure 2.7.

use alluvium_bench::BenchError;
use alluvium_bench::index::slb::store::StoreSubject;

use super::slb::gets;
use super::{Figure, Scale};

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let store = gets::<StoreSubject>("MICA, chains of 1", scale);
    let published = vec![store.most("mica_gain_max", 1.56), store.least("mica_gain_min", 1.0)];
    Ok(Figure {
        id: "slb-2.12",
        title: "Lookaside buffer: MICA's store mode",
        source: "Wu's thesis, Figure 2.12d: gets, CREW, Zipf 0.99; LMDB and longer chains: see slb-2.7, slb-2.8",
        panels: vec![store.panel],
        published,
    })
}
