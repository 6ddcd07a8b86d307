//! What can be made to go wrong.

use std::fmt;
use std::io;
use std::ops::Range;

/// Faults to inject, each counted from the moment the plan is set ([`super::SimulatedStorage::set_faults`]): 0 is the
/// next operation of its kind. `None` never happens. Each fires once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// The power fails before this operation (of those that [`super::SimulatedStorage::operation_count`] counts).
    pub crash_before_operation: Option<u64>,
    /// The process dies before this operation, and the machine keeps running.
    pub kill_before_operation: Option<u64>,
    /// This read fails with a device error.
    pub fail_read: Option<u64>,
    /// This write fails with a device error, some of its bytes written. Counts every change that is not a sync:
    /// of bytes, lengths, holes and names.
    pub fail_write: Option<u64>,
    /// This sync (of a file or of the directory) fails, as Linux does it: some of the unsynced changes reach the
    /// device, the others are forgotten while reads still show them, and a second sync succeeds without them.
    pub fail_sync: Option<u64>,
    /// These openings of files, creations included, fail as if the process had no descriptor left (`EMFILE`).
    pub fail_opens: Option<Range<u64>>,
    /// The size of the device. An operation that needs more blocks fails with [`io::ErrorKind::StorageFull`], after
    /// some of its bytes may have been written.
    pub quota_bytes: Option<u64>,
}

/// Mistakes that a storage engine could make, planted here to show that the simulation finds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// Syncs of files whose name has this prefix succeed without doing anything, as if the engine had forgotten them.
    SkipFileSync {
        /// The prefix; the empty text means all files.
        name_prefix: String,
    },
    /// Syncs of the directory succeed without doing anything.
    SkipDirectorySync,
}

/// The cause inside an [`io::Error`] of a simulated storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedFault {
    /// The storage has crashed (or its process was killed), and this handle belongs to the time before.
    Crash,
    /// An injected device error, like `EIO`.
    Device,
}

impl SimulatedFault {
    /// The simulated fault behind `error`, or behind any of its sources.
    pub fn of(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        let mut current = Some(error);
        while let Some(error) = current {
            if let Some(fault) = error.downcast_ref::<Self>() {
                return Some(*fault);
            }
            // `source` of an `io::Error` skips the error that it wraps.
            let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            current = match inner {
                Some(inner) => Some(inner),
                None => error.source(),
            };
        }
        None
    }
}

impl fmt::Display for SimulatedFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Crash => "the simulated machine has crashed",
            Self::Device => "simulated device error",
        })
    }
}

impl std::error::Error for SimulatedFault {}

impl From<SimulatedFault> for io::Error {
    fn from(fault: SimulatedFault) -> Self {
        io::Error::other(fault)
    }
}
