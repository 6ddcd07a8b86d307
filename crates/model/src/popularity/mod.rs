//! How often each key is written: [`KeyDistribution`], and the primitives over it (Lim's thesis, §4.2 and §4.3).
//!
//! Requests name keys independently of each other, key k with probability f(k). A distribution is stored compressed, as
//! groups of keys of nearly equal probability, so that 10¹² keys take a few hundred groups and a primitive takes
//! microseconds.

mod compressed;
mod density;
mod histogram;
mod primitives;
mod requests;
mod zipf;

#[cfg(test)]
mod tests;

pub use compressed::{KeyDistribution, KeyGroup};
pub use requests::RequestStream;
