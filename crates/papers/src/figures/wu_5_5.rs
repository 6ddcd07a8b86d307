//! Wu's Figure 5.5: misses before and after a crash.
//!
//! The crash of the cache in a file is a copy of the file at that moment, which has the bytes that a kill of the
//! process leaves; then the items that were set last are removed, a thousandth of the memory, as in the thesis, which
//! removes 60 MB of 64 GB. The cache in memory begins empty. Where memcached is installed, two with a memory file
//! (`-e`) get the same requests, but fewer of them: one is asked to end (`SIGUSR1`) and one is killed. The memory is
//! the share of the items that 64 GB have in the thesis; misses are followed by sets, and removed keys are any. SYS has
//! a tenth of the keys, and 64 GB have all of it.

use std::path::Path;

use alluvium_bench::BenchError;
use alluvium_bench::cache::documents::key;
use alluvium_bench::cache::memcached::{End, Memcached};
use alluvium_bench::cache::speed::refused;
use alluvium_cache::{Builder, Cache, Opened, Survive, SurvivingCache};

use super::nvmcached::{Files, OVERHEAD_BYTES, open};
use super::replay::{
    Action, AfterMiss, Request, Subject, Values, draw_requests, find_memcached, load, miss_ratio, replay,
};
use super::traces::Trace;
use super::{Axis, Figure, Panel, Published, Scale, Series};

/// The traces of the thesis's figure.
const TRACES: [&str; 4] = ["APP", "USR", "ETC", "SYS"];
/// Gigabytes of a cache of the thesis.
const CACHE_GB: f64 = 64.0;
const VALUE_BYTES: usize = 100;
/// Windows that warm up, and those before and after the crash.
const WARMING: usize = 12;
const BEFORE: usize = 3;
const AFTER: usize = 9;
/// A part of that.
#[derive(Clone, Copy)]
struct Extent {
    warming: usize,
    after: usize,
    /// Windows have their requests divided by this.
    share: usize,
}
const ALL: Extent = Extent { warming: WARMING, after: AFTER, share: 1 };
/// A request to a memcached takes some 15 µs. Its LRU list has settled after it was loaded.
const OF_MEMCACHED: Extent = Extent { warming: 2, after: 3, share: 3 };
/// Memory that a memcached gets in addition: with a file it takes a page for each size of items, which it has no use
/// for here.
const MEMCACHED_MORE_BYTES: u64 = 8 << 20;
/// Bytes that an item takes there besides value and key, for its sizes.
const MEMCACHED_ITEM_BYTES: usize = 16;
/// The part of the memory whose newest items are lost.
const LOST_PART: usize = 1000;

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let files = Files::new(scale, "wu-5.5")?;
    let (mut panels, mut published) = (Vec::new(), Vec::new());
    for name in TRACES {
        let workload = Workload::new(scale, Trace::named(name))?;
        let mut curves = vec![
            ("in memory", workload.in_memory()?),
            ("surviving", workload.surviving(&files.path("cache"))?),
        ];
        if let Some(program) = find_memcached() {
            for (name, end) in [("memcached, asked", End::Asked), ("memcached, killed", End::Killed)] {
                curves.push((name, workload.memcached(&program, &files.path("memcached"), end)?));
            }
        }
        for (cache, misses) in &curves {
            let (before, after) = (misses[BEFORE - 1], misses[BEFORE]);
            let name = |what: &str| {
                let name = format!("{name}_{cache}_{what}").to_lowercase();
                name.replace(", ", "_").replace(' ', "_")
            };
            published.push(Published::ours(name("miss_ratio_before"), before));
            published.push(Published::ours(name("miss_ratio_after"), after));
            if *cache == "surviving" {
                // "NVMcached does not show any disruption on miss ratio after the crash."
                published.push(Published::new(name("miss_ratio_rise"), 0.0, after - before));
            }
        }
        let series = curves.into_iter().map(|(cache, misses)| {
            let at = |(window, misses): (usize, f64)| (window as f64 + 1.0 - BEFORE as f64, misses);
            Series::measurement(format!("{name}, {cache}"), misses.into_iter().enumerate().map(at).collect())
        });
        panels.push(Panel {
            x: Axis::linear("windows since the crash"),
            y: Axis::linear("miss ratio"),
            series: series.collect(),
        });
    }
    Ok(Figure {
        id: "wu-5.5",
        title: "Misses before and after a crash",
        source: "Wu's thesis, Figure 5.5: traces, 64 GB; here the mix of Table 5.1, the same share of the items",
        panels,
        published,
    })
}

/// The requests of a trace, in windows.
struct Workload {
    values: Values,
    memory: u64,
    keys: u32,
    windows: Vec<Vec<Request>>,
}

impl Workload {
    fn new(scale: &Scale, trace: Trace) -> Result<Self, BenchError> {
        let all = (scale.simulated_keys_max / 30).clamp(20_000, 1 << 25) as f64;
        let keys = (all * trace.keys_share) as u32;
        let values = Values::Numbered(VALUE_BYTES);
        let item_bytes = (values.payload_bytes_mean() + OVERHEAD_BYTES) as f64;
        // All items of SYS fit, and those of the smallest tests.
        let memory = (all * item_bytes * (CACHE_GB / trace.data_gb).min(1.0)) as u64;
        let memory = memory.max(1 << 20);
        let window = (all / 6.0) as usize;
        let count = window * (WARMING + BEFORE + AFTER);
        let requests = draw_requests(keys, trace.skew(keys), trace.mix, count, scale.seed)?;
        let windows = requests.chunks(window).map(<[Request]>::to_vec).collect();
        Ok(Self { values, memory, keys, windows })
    }

    fn builder(&self) -> Builder {
        Cache::builder()
            .memory_limit(self.memory as usize)
            .payload_bytes_mean(self.values.payload_bytes_mean())
    }

    /// Miss ratios of windows, which follow those that warm up.
    fn misses(
        &self,
        mut cache: impl Subject,
        windows: std::ops::Range<usize>,
        share: usize,
    ) -> Result<Vec<f64>, BenchError> {
        let mut misses = Vec::new();
        for window in &self.windows[windows] {
            let part = &window[..window.len() / share];
            misses.push(miss_ratio(&replay(&mut cache, &self.values, part, AfterMiss::Set)?));
        }
        Ok(misses)
    }

    /// Warms a cache up, and returns the miss ratios before the crash.
    fn before(&self, mut cache: impl Subject, extent: Extent) -> Result<Vec<f64>, BenchError> {
        load(&mut cache, &self.values, self.keys)?;
        self.misses(&mut cache, WARMING - extent.warming..WARMING, extent.share)?;
        self.misses(cache, WARMING..WARMING + BEFORE, extent.share)
    }

    fn after(&self, cache: impl Subject, extent: Extent) -> Result<Vec<f64>, BenchError> {
        let crash = WARMING + BEFORE;
        self.misses(cache, crash..crash + extent.after, extent.share)
    }

    fn in_memory(&self) -> Result<Vec<f64>, BenchError> {
        let cache = || self.builder().build().map_err(refused);
        let mut misses = self.before(&cache()?, ALL)?;
        misses.extend(self.after(&cache()?, ALL)?);
        Ok(misses)
    }

    fn surviving(&self, path: &Path) -> Result<Vec<f64>, BenchError> {
        let opened = |path: &Path, reset| open(self.builder().survive(path, Survive::Pmem).reset(reset));
        let cache = opened(path, true)?;
        let mut misses = self.before(&cache, ALL)?;
        let left = path.with_extension("left");
        std::fs::copy(path, &left)?;
        drop(cache);
        let cache = opened(&left, false)?;
        if cache.opened() == Opened::New {
            return Err(BenchError::WrongAnswer("the content was not found again".to_owned()));
        }
        self.lose_newest(&cache);
        misses.extend(self.after(&cache, ALL)?);
        drop(cache);
        std::fs::remove_file(path)?;
        std::fs::remove_file(left)?;
        Ok(misses)
    }

    /// Removes the items that were set last.
    fn lose_newest(&self, cache: &SurvivingCache) {
        let mut left = (self.memory as usize / LOST_PART).div_ceil(self.values.payload_bytes_mean());
        for request in self.windows[..WARMING + BEFORE].iter().flatten().rev() {
            if left == 0 {
                return;
            }
            if request.action == Action::Set && cache.remove(&key(u64::from(request.number))) {
                left -= 1;
            }
        }
    }

    fn memcached(&self, program: &Path, file: &Path, end: End) -> Result<Vec<f64>, BenchError> {
        let item_bytes = self.values.payload_bytes_mean() + MEMCACHED_ITEM_BYTES;
        let memory = self.memory + MEMCACHED_MORE_BYTES;
        let mut memcached = Memcached::start_in_file(program, memory, item_bytes, file)?;
        let mut misses = self.before(&mut memcached, OF_MEMCACHED)?;
        memcached.restart(end)?;
        misses.extend(self.after(&mut memcached, OF_MEMCACHED)?);
        drop(memcached);
        std::fs::remove_file(file)?;
        Ok(misses)
    }
}
