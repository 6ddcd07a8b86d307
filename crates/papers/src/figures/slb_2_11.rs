//! Wu's Figure 2.11: gets and sets of a chained hash table. Every set moves its item, so it is an update of the buffer.
//!
//! In the thesis a few sets cost a third of the throughput, since a set takes the lock of its chain. Here a set is a
//! handful of stores, and brings its item to the front of the chain: with 100,000 keys and 5 % sets, 0.89 of the gets
//! end at the first node instead of 0.56, which the processor learns to predict. So throughput even increases: to 1.4
//! to 1.6 times that of only gets there, and to 1.1 times at 6.4 million keys.

use std::hint::black_box;

use alluvium_bench::BenchError;
use alluvium_bench::index::slb::chained::Chained;
use alluvium_bench::index::slb::contest::{Requests, Way, check, gain};
use alluvium_bench::index::slb::subject::{Item, Subject};
use alluvium_index::slb::{Buffer, Config, Lookup, Reader};

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

/// A chained hash table without a buffer, and one with.
struct Mixed {
    table: Chained<1>,
    buffer: Buffer<Chained<1>>,
    reader: Reader,
}

/// How an item is replaced by one at another position, and how one is looked up.
type Change = fn(&mut Mixed, u64);
type Get = for<'a> fn(&'a mut Mixed, &u64) -> Option<&'a Item>;

/// Operations per second on a chained hash table without and with a buffer; one operation in `sets_every` replaces an
/// item by one at another position.
fn mixed_gain(items: u32, requests: &Requests, config: Config, sets_every: usize) -> [f64; 2] {
    let mut buffer = Buffer::new(Chained::build(items), config);
    buffer.calibrate(requests.repeated(), 1);
    let mut mixed = Mixed { table: Chained::build(items), buffer, reader: Reader::default() };
    let direct: (Change, Get) = black_box((
        |mixed, key| _ = mixed.table.replace(key),
        |mixed, key| mixed.table.search(key).map(|(_, item)| item),
    ));
    let through: (Change, Get) = black_box((
        |mixed, key| mixed.buffer.change_mut(&key, |table| (Some(table.replace(key)), ())),
        |mixed, key| mixed.buffer.get(&mut mixed.reader, key),
    ));
    // Both ways, so that neither table is loaded from memory for the first time later.
    mix(&mut mixed, through, requests.all(), sets_every);
    mix(&mut mixed, direct, requests.all(), sets_every);
    gain(|round, way| {
        let keys = requests.round(round);
        mix(&mut mixed, if way == Way::Direct { direct } else { through }, keys, sets_every);
        keys.len()
    })
}

#[inline(never)]
fn mix(mixed: &mut Mixed, (change, get): (Change, Get), keys: &[u64], sets_every: usize) {
    for keys in keys.chunks(sets_every) {
        let sets = usize::from(keys.len() == sets_every);
        let (gets, sets) = keys.split_at(keys.len() - sets);
        for key in gets {
            check::<Chained<1>>(*key, get(mixed, key));
        }
        for key in sets {
            change(mixed, *key);
        }
    }
}
