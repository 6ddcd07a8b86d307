//! Gets by Zipf's law, with room for 5 % of the items: in Alluvium's row cache, and in the block caches of peers, whose
//! indexes and filters have memory of their own as Alluvium's have.

use alluvium_bench::{BenchError, WorkDirectories};
use alluvium_model::{KeyDistribution, RequestStream};

use super::super::Options;
use super::super::contest::{Contest, Results};
use super::super::engine::Settings;
use super::super::items::{KEY_BYTES, key_of, value_of};
use super::super::kind::Kind;
use super::super::request::get_present;
use super::super::row::{Row, ours};
use super::super::tally::Tally;
use super::super::turn::Step;
use super::VALUE_BYTES;

const SKEW: f64 = 0.99;
const SHARE: f64 = 0.05;
/// Targets: reads of a get above the model's miss ratio, and the rate relative to that without rows.
const MISS_RATIO_OFF: f64 = 0.03;
const SPEEDUP: f64 = 2.0;
/// Turns of each engine before those that count, so that caches know what is popular.
const WARM_TURNS: u64 = 2;
/// Distance in the stream of requests between threads and between turns: none repeats at once what another does.
const PART_REQUESTS: u64 = 1 << 19;

pub fn run(options: &Options, directories: &WorkDirectories) -> Result<Vec<Row>, BenchError> {
    let room = (SHARE * options.items as f64 * (KEY_BYTES + VALUE_BYTES) as f64) as u64;
    let (tallies, rows) = popular(options, directories, |_| true, room)?;
    let (without, _) = popular(options, directories, |kind| kind == Kind::Alluvium, 0)?;
    let without = without.first().map_or(f64::NAN, |(_, tally)| tally.rate() / 1e3);
    let mut row = Row::of_rates(format!("zipf 0.99, room for 5 %, {} threads", options.threads), &tallies);
    if ours(&row.cells).is_some() {
        let keys = KeyDistribution::zipf(options.items as f64, SKEW)?;
        let misses = 1.0 - keys.cache_hit_share(rows as f64);
        let (reads_max, least) = (misses + MISS_RATIO_OFF, SPEEDUP * without);
        row = row.with_target(format!("≥ {least:.0}: 2 × without rows, at ≤ {reads_max:.3} r"), |cell| {
            cell.figure >= least && cell.reads.is_some_and(|reads| reads <= reads_max)
        });
        if let Some((_, cell)) = row.cells.iter_mut().find(|(kind, _)| *kind == Kind::Alluvium) {
            cell.note = format!("model {misses:.3} r for {rows} rows");
        }
    }
    Ok(vec![row])
}

/// The tallies, and the number of rows in Alluvium's cache.
fn popular(
    options: &Options,
    directories: &WorkDirectories,
    kinds: impl Fn(Kind) -> bool,
    cache_bytes: u64,
) -> Result<(Results<Tally>, u64), BenchError> {
    let settings = Settings { cache_bytes: Some(cache_bytes), ..Settings::new(options.memory, VALUE_BYTES) };
    let contest = Contest::open(options, directories, "zipf", kinds, &settings)?;
    contest.fill(options.items, |number| (key_of(number), value_of(number, VALUE_BYTES)))?;
    let mut rows = 0;
    let tallies = contest.by_turns("gets by Zipf's law", |opened, round, tally| {
        let warming = if round == 0 { WARM_TURNS } else { 0 };
        for turn in 0..=warming {
            let step_of = |thread: usize| -> Result<Step<'_>, BenchError> {
                // The seed also says which items are popular, so all have the same one, and other parts of its stream.
                let mut requests = RequestStream::new(options.items, SKEW, options.seed)?;
                let part = (round * (WARM_TURNS + 1) + turn) * options.threads as u64 + thread as u64;
                (0..part * PART_REQUESTS).for_each(|_| _ = requests.next_chance());
                Ok(Box::new(move |reader| {
                    let number = u64::from(requests.next_key());
                    get_present(reader, (number, key_of(number)), VALUE_BYTES, false)
                }))
            };
            let mut unused = Tally::default();
            let counted = if turn == warming { &mut *tally } else { &mut unused };
            options.turn().read(&*opened.engine, step_of, counted)?;
        }
        rows = opened.engine.cached_items().unwrap_or(rows);
        Ok(())
    })?;
    contest.close()?;
    Ok((tallies, rows))
}
