//! Entropy-coded tries: the rank or the page of a hashed key in a sorted table, in 2.5 bit/key or a quarter of that.
//!
//! Source: SILT's SortedStore (Lim, Fan, Andersen, Kaminsky, SOSP 2011, §3.3) in the form of H. Lim's thesis (Carnegie
//! Mellon University 2014), chapter 3. The hash space is cut into virtual buckets; the keys of a bucket form a binary
//! trie, written in pre-order as the number of keys in each left half, in a code that follows from the binomial
//! distribution. A subtrie within one page is left out (§3.1.6), which makes the sparse trie.
//!
//! Kept from the thesis: static Huffman codes up to `h_max` = 64 keys, one code for "no key left" and "all keys left"
//! (so absent keys are not recognised), pre-order, virtual buckets. Where we differ:
//!
//! - Buckets are cut by multiplication, so that their actual mean is what was asked for, not down to half of it. Their
//!   directory stores each number as its distance from a straight line (see `elias_fano::near_linear`): 0.08 bit/key
//!   for g = 256 whatever the number of keys, nothing to select, and no offset can overflow.
//! - Above 64 keys: an exponential Golomb code with an order that follows from the size, not Elias-gamma (see
//!   `golomb`).
//! - Subtries of many keys are *regions*, which say where their halves meet; the left half is read from its start, the
//!   right one from its end. In a dense bucket of 256 keys a reader gets to an eighth without skipping anything (see
//!   `encoder`).
//! - Skipping in a dense trie reads all codes in eight bits in one step by table (see `huffman`).
//! - No branch predictor learns which half a key is in; descending regions decides no branch by it.
//! - Tries are built in one pass over sorted hashes that holds one bucket, for any granularity; converting from dense
//!   to sparse or back is another such pass over the same table.
//!
//! Considered and rejected: one Huffman code for all shapes of a subtrie up to 4 keys would save 0.014 bit/key by
//! calculation (2.363 to 2.349; the entropy is 2.309) and need larger tables. Built, measured and replaced: Elias-Fano
//! lists as directory (as small, slower to read); directories without frames (0.024 bit/key larger at 16 M keys,
//! growing with the number of keys); regions down to quarters of a dense bucket, not eighths (0.046 bit/key smaller; as
//! fast in the second-level cache, but 550 ns instead of 240 for 8 M keys).
//!
//! # Cost
//!
//! Uniform keys: see [`Granularity`] for space. A lookup reads three splits, two lengths and about a sixteenth of its
//! bucket's code. Keys that crowd into few buckets stay correct and make lookups logarithmic in the crowd. Building
//! reads each key once.
//!
//! # Bytes
//!
//! Little-endian 64-bit words:
//!
//! | words | content |
//! |---|---|
//! | 1 | kind, `0x3145_4952_5443_4545` |
//! | 3 | first hash and last hash of the range, number of buckets |
//! | 3 | granularity (0 key, 1 regular page, 2 listed page), keys per regular page else 0, fragment bits |
//! | 4 + n | rank of each bucket's first key and the number of keys, as a list near a line |
//! | 4 + n | position of each bucket's first bit and the number of bits, in the same form |
//! | 1 + n | length in bytes of an Elias-Fano list, the list of each listed page's first rank (empty for others) |
//! | n | the buckets' bits |
//! | n | fragments, packed without gaps |
//! | 1 | XXH3-64 of everything before, seeded with the kind |
//!
//! A list near a line consists of its last number, bias, width of a frame, width of a rest, packed frames, packed
//! rests.

pub(crate) mod bits;
mod builder;
mod config;
mod decoder;
mod dense;
mod encoder;
mod fragments;
pub(crate) mod golomb;
mod huffman;
mod index;
mod key_bits;
mod pages;
mod sparse;
mod waiting;

pub use builder::TrieBuilder;
pub use config::{Granularity, TrieConfig};
pub use fragments::Fragments;
pub use index::Trie;
