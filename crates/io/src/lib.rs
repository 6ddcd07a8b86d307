//! Files for Alluvium.
//!
//! [`Storage`] and [`File`] are the two traits behind which all file access happens. [`FileStorage`] is a real
//! directory, with direct I/O and io_uring where they are available. [`SimulatedStorage`] is a directory in memory that
//! crashes, tears and loses on purpose. [`AppendBuffer`] is the memory of a log's tail.
//! Beside them, [`datagrams`] sends and receives datagrams in bursts.
//!
//! Architecture invariant: this crate knows nothing of keys, tables or plans. `unsafe` lives in its leaf modules
//! only (`memory`, `allocator`, `append_buffer`, `file_storage::ring*`, `calibrate::raw`, `datagrams::system_calls`,
//! `datagrams::xdp::system_calls`, `datagrams::xdp::rings`), behind safe surfaces.

mod aligned_buffer;
mod allocator;
mod append_buffer;
pub mod calibrate;
pub mod clock;
mod closable;
mod counters;
pub mod datagrams;
mod descriptors;
mod error;
#[cfg(unix)]
mod file_storage;
mod locked_file;
mod many_directories;
mod memory;
mod memory_pool;
mod pipeline;
mod priority;
mod random;
mod read_only;
mod simulated;
pub mod storage;
pub mod sync;
mod two_directories;

pub use aligned_buffer::AlignedBuffer;
pub use allocator::{give_back_freed_memory, trim_freed_memory};
pub use append_buffer::{AppendBuffer, Appender};
pub use clock::{Clock, SystemClock};
pub use closable::{ClosableStorage, StorageClosed};
pub use counters::{DeviceCounters, ProcessMemory, machine_memory_bytes};
pub use descriptors::raise_descriptor_limit;
pub use error::FileError;
pub use file_storage::{FileStorage, IoOptions, ReadWait, Usage};
#[cfg(unix)]
pub use locked_file::LockedFile;
pub use many_directories::ManyDirectories;
pub use memory_pool::{KeptBuffers, POOL_BYTES_MAX, bound_pooled_bytes, pooled_bytes};
pub use pipeline::{Completed, Operation, Pipeline};
pub use priority::give_way;
pub use read_only::ReadOnlyStorage;
pub use simulated::{FaultPlan, PlantedBug, SimulatedClock, SimulatedFault, SimulatedStorage};
pub use storage::{DirectoryLock, File, OpenMode, ReadRequest, Storage};
pub use two_directories::TwoDirectories;

/// Offsets, lengths and memory that are multiples of this need no bounce copy under direct I/O: one page.
pub const ALIGNMENT: usize = 4096;
