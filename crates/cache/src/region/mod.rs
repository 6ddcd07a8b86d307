//! Regions: where the items of a partition are stored. An entry of the index names a position in one.
//!
//! [`Logs`] are circular logs (Lim's thesis, §5.3.3, Figure 5.5): items are appended at the tail and evicted at the
//! head. [`Space`] takes items of any size and gives their room back, by segregated fits with boundary tags.

mod circular;
mod gather;
mod ghost;
mod logs;
mod position;
mod size_class;
mod space;
mod traits;

pub(crate) use circular::{CircularLog, copy_words};
pub(crate) use gather::{Hole, Neighbour};
pub(crate) use ghost::Ghost;
pub(crate) use logs::{Logs, MAIN, PROBATION};
pub(crate) use position::{POSITION_BITS, Position};
pub(crate) use space::{BLOCK_WORDS_MIN, Space};
pub(crate) use traits::Region;
