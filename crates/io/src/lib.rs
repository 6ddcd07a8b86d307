//! Files for Alluvium.
//!
//! Architecture invariant: this crate knows nothing of keys, tables or plans.

pub mod clock;
pub mod storage;

pub use clock::{Clock, SystemClock};
pub use storage::{DirectoryLock, File, OpenMode, ReadRequest, Storage};

/// Offsets, lengths and memory that are multiples of this need no bounce copy under direct I/O: one page.
pub const ALIGNMENT: usize = 4096;
