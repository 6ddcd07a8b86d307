//! [`Calibration`]: measures whether lookups through a table are faster than direct ones.
//!
//! Both ways look up the same keys. Only settled caches count: after lookups of the other way the processor's caches
//! hold the other way's memory, and lookups get faster for some hundred thousand keys. So each way looks up half of a
//! stretch before it is timed. The ways alternate in order, so that neither gains from what the other has loaded.

use std::borrow::Borrow;
use std::hint::black_box;

use super::buffer::{get_each_directly, get_each_through, get_through};
use super::lookup::Lookup;
use super::reader::Reader;
use super::table::Table;

/// Ratio of the time through the table to the time without it, below which the table is used. A calibration favours the
/// table by some percent: its direct lookups share the processor's caches with the table, which later ones do not.
const RATIO_MAX: f64 = 0.9;

/// Number of lookups after which the hit ratio is looked at while the table is filled, as a fraction of its entries.
const FILLING_FRACTION: usize = 4;

/// Maximum number of lookups that fill a table, as a multiple of its entries.
const FILLING_MAX: usize = 4;

/// Minimum rise of the hit ratio for which filling continues.
const RISE_MIN: f64 = 0.01;

/// Number of stretches, an even number, and of keys in each.
const STRETCHES: usize = 4;
const STRETCH_KEYS: usize = 1 << 19;

/// Number of keys that are timed together.
const BLOCK: usize = 1024;

/// Result of a calibration: nanoseconds of a lookup.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Through the table.
    pub table_ns: f64,
    /// Without it.
    pub direct_ns: f64,
}

impl Calibration {
    /// The time through the table divided by the time without it.
    pub fn ratio(&self) -> f64 {
        self.table_ns / self.direct_ns
    }

    /// Whether the table is used: lookups through it take clearly less time.
    pub fn pays(&self) -> bool {
        self.ratio() < RATIO_MAX
    }
}

/// Fills the table with the first of `keys`, and looks up the next ones both ways.
pub(super) fn run<I: Lookup, K: Borrow<I::Key>>(
    index: &I,
    table: &Table,
    mut keys: impl Iterator<Item = K>,
    keys_per_call: usize,
    mut now_ns: impl FnMut() -> u64,
) -> Calibration {
    let mut lookups =
        Lookups { index, table, reader: Reader::default(), keys_per_call: keys_per_call.max(1) };
    lookups.fill(&mut keys);
    let mut ns = [0.0; 2];
    let mut count = 0;
    while count < STRETCHES {
        let stretch: Vec<K> = keys.by_ref().take(STRETCH_KEYS).collect();
        if stretch.is_empty() {
            break;
        }
        for side in [count % 2, 1 - count % 2] {
            ns[side] += lookups.time([Way::Table, Way::Direct][side], &stretch, &mut now_ns);
        }
        count += 1;
    }
    let [table_ns, direct_ns] = ns.map(|ns| ns / count as f64);
    Calibration { table_ns, direct_ns }
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Table,
    Direct,
}

struct Lookups<'a, I> {
    index: &'a I,
    table: &'a Table,
    reader: Reader,
    keys_per_call: usize,
}

impl<I: Lookup> Lookups<'_, I> {
    /// Looks keys up through the table until its hit ratio rises no more.
    fn fill<K: Borrow<I::Key>>(&mut self, keys: &mut impl Iterator<Item = K>) {
        let window = (self.table.capacity() / FILLING_FRACTION).max(1);
        let mut hit_ratio = 0.0;
        for _ in 0..FILLING_MAX * FILLING_FRACTION {
            let keys: Vec<K> = keys.take(window).collect();
            self.reader = Reader::default();
            self.look_up(Way::Table, &keys);
            let before = std::mem::replace(&mut hit_ratio, self.reader.stats().hit_ratio());
            if hit_ratio < before + RISE_MIN {
                break;
            }
        }
    }

    /// Nanoseconds of a lookup in the second half of `keys`: the mean of the faster half of its blocks, which leaves
    /// interruptions out.
    fn time<K: Borrow<I::Key>>(&mut self, way: Way, keys: &[K], now_ns: &mut impl FnMut() -> u64) -> f64 {
        let (settling, timed) = keys.split_at(keys.len() / 2);
        self.look_up(way, settling);
        let mut began_ns = now_ns();
        let mut blocks_ns: Vec<f64> = timed
            .chunks(BLOCK)
            .map(|keys| {
                self.look_up(way, keys);
                let before_ns = std::mem::replace(&mut began_ns, now_ns());
                (began_ns - before_ns) as f64 / keys.len() as f64
            })
            .collect();
        blocks_ns.sort_by(f64::total_cmp);
        let faster = &blocks_ns[..blocks_ns.len().div_ceil(2)];
        faster.iter().sum::<f64>() / faster.len() as f64
    }

    fn look_up<K: Borrow<I::Key>>(&mut self, way: Way, keys: &[K]) {
        let Self { index, table, reader, keys_per_call } = self;
        match (way, *keys_per_call) {
            (Way::Table, 1) => {
                keys.iter().for_each(|key| _ = black_box(get_through(*index, table, reader, key.borrow())));
            }
            (Way::Direct, 1) => keys.iter().for_each(|key| _ = black_box(get_directly(*index, key.borrow()))),
            (Way::Table, count) => keys.chunks(count).for_each(|keys| {
                get_each_through(*index, table, reader, keys, &mut |_, item| _ = black_box(item));
            }),
            (Way::Direct, count) => keys
                .chunks(count)
                .for_each(|keys| get_each_directly(*index, keys, &mut |_, item| _ = black_box(item))),
        }
    }
}

/// A call, like a lookup through the table.
#[inline(never)]
fn get_directly<'a, I: Lookup>(index: &'a I, key: &I::Key) -> Option<I::Item<'a>> {
    index.search(key).map(|(_, item)| item)
}
