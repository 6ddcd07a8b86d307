//! Elias-Fano lists: non-decreasing numbers in about 2 + log2(universe / count) bits each, with random access and
//! predecessor search.
//!
//! Each number is split in two. The low `l` bits, about log2(universe / count), are stored as they are; the rest, the
//! *high part*, is stored in unary: element `i` with high part `h` sets bit `h + i` of one bit vector. Position of the
//! i-th one gives element `i`; position of the h-th zero gives the number of elements with high part at most `h`.
//! The positions of every 256th one and every 16th zero are sampled, each stored as its distance from a straight line
//! (see `near_linear`).
//!
//! Sources: P. Elias 1974, R. Fano 1971; the bit vector layout and the broadword selection follow S. Vigna,
//! "Quasi-succinct indices", WSDM 2013. We differ in having one plain sample level and no skip pointers: our lists have
//! evenly spread numbers, for which one sample, 64 bits from there and one word of low parts answer a predecessor
//! search without an unpredictable branch. For clustered numbers the scan grows with the largest run of the bit vector;
//! results stay correct.
//!
//! # Bytes
//!
//! All little-endian 64-bit words: kind (`0x3146_4554_5341_494c`), count, low bits per element, length of the high bit
//! vector, the low words, the high words, XXH3-64 of everything before. Samples are recomputed on reading.

mod builder;
mod differences;
mod list;
mod near_linear;
mod packed;
mod select;
pub(crate) mod wire;

pub use builder::EliasFanoBuilder;
pub(crate) use differences::Differences;
pub(crate) use list::Downwards;
pub use list::{EliasFano, Upwards};
pub(crate) use near_linear::NearLinearList;
pub(crate) use packed::PackedInts;
