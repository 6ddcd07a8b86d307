//! Circular logs (Lim's thesis, §5.3.3, Figure 5.5): items are appended at the tail and evicted at the head.

mod circular;
mod position;

pub(crate) use circular::{CircularLog, copy_words};
pub(crate) use position::{POSITION_BITS, Position};
