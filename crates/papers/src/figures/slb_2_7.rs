//! Wu's Figure 2.7: gets of a B+-tree and a skip list, where walks are long.

use alluvium_bench::BenchError;
use alluvium_bench::index::slb::beside_items::{BPlusTree, BesideItems, SkipList};

use super::slb::gets;
use super::{Figure, Scale};

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let tree = gets::<BesideItems<BPlusTree>>("B+-tree", scale);
    let list = gets::<BesideItems<SkipList>>("skip list", scale);
    let published = vec![
        tree.least("b_plus_tree_gain_min", 2.0),
        list.least("skip_list_gain_min", 2.0),
        tree.most("b_plus_tree_gain_max", 22.0),
        list.most("skip_list_gain_max", 22.0),
    ];
    Ok(Figure {
        id: "slb-2.7",
        title: "Lookaside buffer: B+-tree and skip list",
        source: "Wu's thesis, Figure 2.7: gets, Zipf 0.99; here one thread, and items beside the index",
        panels: vec![tree.panel, list.panel],
        published,
    })
}
