//! The policy of stores: nothing is forgotten, and items for which there is no room are refused (Lim's thesis, §5.3.3,
//! "Store Mode"). Its index chains buckets, its region is a space that takes items of any size.

mod moves;
mod policy;
mod sizes;

pub use policy::OutOfSpace;
pub(crate) use policy::Refusing;
pub(crate) use sizes::{Sizes, bytes_for};
