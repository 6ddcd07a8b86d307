//! [`LogOptions`]: what a [`Log`](super::Log) is started with.

use std::sync::Arc;

use alluvium_io::{Clock, Storage};

use super::recycler::Recycler;
use super::retained::RetainedLog;
use super::segment::Filling;
use crate::blob::Blobs;
use crate::environment::PlantedBugs;
use crate::log_position::LogPosition;
use crate::reserve::Reserve;

/// The settings of a [`Log`](super::Log).
#[derive(Debug)]
pub(crate) struct LogOptions {
    pub storage: Arc<dyn Storage>,
    pub clock: Arc<dyn Clock>,
    /// Blob files, which records refer to: synced before the records.
    pub blobs: Arc<Blobs>,
    pub recycler: Arc<Recycler>,
    pub reserve: Arc<Reserve>,
    pub session_seed: u64,
    /// Number of this opening for writing.
    pub opening: u64,
    /// The end of the log of earlier openings, if it is known.
    pub follows: Option<LogPosition>,
    pub retained: Arc<RetainedLog>,
    pub segment_bytes: u64,
    pub filling: Filling,
    pub planted_bugs: PlantedBugs,
}
