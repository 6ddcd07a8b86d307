//! Samples memory and space while a phase runs, since the peak differs from the value at the end.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use alluvium::Db;
use alluvium_io::ProcessMemory;

use super::display::DriveDisplay;
use crate::device;
use crate::measurement::Measurement;

/// While items are written memory is sampled this often, space every second time: reading the sizes of some hundred
/// files costs half a millisecond.
pub const WRITING_INTERVAL: Duration = Duration::from_millis(50);
/// While items are only read, nothing changes except what is loaded on first use, and more samples would show in the
/// tail latency.
pub const READING_INTERVAL: Duration = Duration::from_secs(1);

/// The progress of a phase; its threads count, the sampler reads.
#[derive(Debug, Default)]
pub struct Progress {
    /// Operations done.
    pub operations: AtomicU64,
    /// Items in the store.
    pub items: AtomicU64,
}

/// One sample of the store.
#[derive(Clone, Copy, Debug)]
struct Sample {
    operations: u64,
    items: u64,
    index_bytes: u64,
    /// All memory that the store accounts for.
    store_bytes: u64,
    resident_bytes: Option<u64>,
    anonymous_bytes: Option<u64>,
    /// Allocated bytes of the directories; absent in every second sample.
    allocated_bytes: Option<u64>,
}

/// The samples of a phase.
#[derive(Debug, Default)]
pub struct Samples {
    samples: Vec<Sample>,
}

impl Samples {
    /// Samples every `interval` until `is_done`, and advances `display`. The last sample is taken after `is_done` is
    /// set, so there is at least one.
    pub fn collect(
        db: &Db,
        directories: &[PathBuf],
        progress: &Progress,
        is_done: &AtomicBool,
        mut display: DriveDisplay<'_>,
        interval: Duration,
    ) -> Self {
        let mut samples = Vec::new();
        loop {
            let is_last = is_done.load(Ordering::Acquire);
            let memory = db.stats().memory;
            let process = ProcessMemory::now();
            samples.push(Sample {
                operations: progress.operations.load(Ordering::Relaxed),
                items: progress.items.load(Ordering::Relaxed),
                index_bytes: memory.finding(),
                store_bytes: memory.total(),
                resident_bytes: process.map(|process| process.resident_bytes),
                anonymous_bytes: process.map(|process| process.anonymous_bytes),
                allocated_bytes: (is_last || samples.len() % 2 == 0)
                    .then(|| directories.iter().map(|path| device::allocated_bytes(path)).sum()),
            });
            display.show(progress.operations.load(Ordering::Relaxed));
            if is_last {
                display.end();
                return Self { samples };
            }
            std::thread::park_timeout(interval);
        }
    }

    /// Appends the samples of a later part of the same phase.
    pub fn add(&mut self, later: Self) {
        let before = self.samples.last().map_or(0, |last| last.operations);
        self.samples.extend(
            later
                .samples
                .into_iter()
                .map(|sample| Sample { operations: before + sample.operations, ..sample }),
        );
    }

    /// Adds the results for memory and space.
    ///
    /// - `index_bytes_per_item` with `_average`, `_second_half`, `_second_half_peak`, `_peak`: memory of indexes,
    ///   filters and log index per item present at that moment. Average and peak exclude the time before a tenth of
    ///   `items` was present, when fixed costs are divided by very few items; the second half is that of the operations
    ///   (and settling).
    /// - `space_amplification_peak` (without the same tenth) and `space_amplification`: allocated bytes per live byte,
    ///   at the worst moment and at the end.
    /// - `store_bytes_peak`: all memory that the store accounts for, at the worst moment; `resident_bytes_peak` is the
    ///   whole process, `anonymous_bytes_peak` excludes the program's own file.
    pub fn report(&self, measurement: Measurement, items: u64, item_bytes: u64) -> Measurement {
        let Some(last) = self.samples.last() else { return measurement };
        let grown: Vec<&Sample> = self.samples.iter().filter(|sample| sample.items * 10 >= items).collect();
        let per_item: Vec<f64> = grown.iter().map(|sample| sample.index_bytes_per_item()).collect();
        let second_half: Vec<f64> = grown
            .iter()
            .filter(|sample| sample.operations * 2 >= last.operations)
            .map(|sample| sample.index_bytes_per_item())
            .collect();
        let space: Vec<f64> =
            grown.iter().filter_map(|sample| sample.space_amplification(item_bytes)).collect();
        let anonymous_peak = self.samples.iter().filter_map(|sample| sample.anonymous_bytes).max();
        let resident_peak = self.samples.iter().filter_map(|sample| sample.resident_bytes).max();
        measurement
            .metric("index_bytes_per_item", last.index_bytes_per_item())
            .metric("index_bytes_per_item_average", average(&per_item))
            .metric("index_bytes_per_item_second_half", average(&second_half))
            .metric("index_bytes_per_item_second_half_peak", peak(&second_half))
            .metric("index_bytes_per_item_peak", peak(&per_item))
            .metric("space_amplification", last.space_amplification(item_bytes))
            .metric("space_amplification_peak", peak(&space))
            .metric("store_bytes_peak", self.samples.iter().map(|sample| sample.store_bytes).max())
            .metric("anonymous_bytes_peak", anonymous_peak)
            .metric("resident_bytes_peak", resident_peak)
    }
}

impl Sample {
    fn index_bytes_per_item(&self) -> f64 {
        self.index_bytes as f64 / self.items.max(1) as f64
    }

    fn space_amplification(&self, item_bytes: u64) -> Option<f64> {
        Some(self.allocated_bytes? as f64 / (self.items.max(1) * item_bytes.max(1)) as f64)
    }
}

fn average(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn peak(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(operations: u64, index_bytes: u64, allocated_bytes: u64) -> Sample {
        Sample {
            operations,
            items: operations,
            index_bytes,
            store_bytes: index_bytes + 1,
            resident_bytes: Some(5),
            anonymous_bytes: Some(4),
            allocated_bytes: Some(allocated_bytes),
        }
    }

    #[test]
    fn averages_and_peaks_leave_the_beginning_out() {
        let samples = Samples {
            samples: vec![
                sample(1, 1_000, 10_000),
                sample(20, 40, 400),
                sample(60, 30, 900),
                sample(100, 100, 1_000),
            ],
        };
        let metrics = samples.report(Measurement::new("store", "load"), 100, 10).metrics;
        assert_eq!(metrics["index_bytes_per_item"], 1.0);
        assert_eq!(metrics["index_bytes_per_item_peak"], 2.0);
        assert_eq!(metrics["index_bytes_per_item_second_half"], 0.75);
        assert_eq!(metrics["index_bytes_per_item_second_half_peak"], 1.0);
        assert_eq!(metrics["space_amplification"], 1.0);
        assert_eq!(metrics["space_amplification_peak"], 2.0);
        assert_eq!(metrics["store_bytes_peak"], 1_001);
        assert_eq!(
            (&metrics["anonymous_bytes_peak"], &metrics["resident_bytes_peak"]),
            (&4.into(), &5.into())
        );
    }
}
