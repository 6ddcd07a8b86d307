//! Entropy-coded tries: the rank or the page of a hashed key in a sorted table, in 2.5 bit/key or a quarter of that.
//!
//! Source: SILT's SortedStore (Lim, Fan, Andersen, Kaminsky, SOSP 2011, §3.3) in the form of H. Lim's thesis (Carnegie
//! Mellon University 2014), chapter 3. The hash space is cut into virtual buckets; the keys of a bucket form a binary
//! trie, written in pre-order as the number of keys in each left half, in a code that follows from the binomial
//! distribution. A subtrie that lies within one page is left out (§3.1.6), which makes the sparse trie.
//!
//! Kept from the thesis: static Huffman codes up to `h_max` = 64 keys, one code for "no key left" and "all keys left"
//! (so absent keys are not recognised), pre-order, virtual buckets. Where we differ:
//!
//! - Buckets are cut by multiplication, so that their true mean is what was asked for, not down to half of it; bucket
//!   directories are Elias-Fano lists (0.09 bit/key for g = 256, and no offset can overflow).
//! - Above 64 keys: an exponential Golomb code with an order that follows from the size, not Elias-gamma (see `gamma`).
//! - The right half of a dense bucket is written backwards from the bucket's end, so half as much is skipped.
//! - Skipping reads all codes in eight bits at one step by table (see `huffman`).
//! - Tries are built in one pass over sorted hashes that holds one bucket, for any granularity.
//!
//! Weighed and left out: one Huffman code for all shapes of a subtrie up to 4 keys saves 0.014 bit/key (2.363 to 2.349;
//! the entropy is 2.309) and needs larger tables; stored lengths of left subtries cost 0.05 bit/key for each halving of
//! the skipped bits.
//!
//! # Cost
//!
//! Uniform keys: see [`Granularity`] for space; lookups read a quarter (dense) or half (sparse) of a bucket's code.
//! Keys that crowd into few buckets stay correct and make lookups linear in the crowd. Building reads each key once.
//!
//! # Bytes
//!
//! Little-endian 64-bit words: kind (`0x3145_4952_5443_4545`), first hash and last hash of the range, number of
//! buckets, granularity (0 key, 1 regular page, 2 listed page), keys per regular page else 0, fragment bits, then three
//! Elias-Fano lists each after its length in bytes: rank of each bucket's first key followed by the number of keys;
//! position of each bucket's first bit followed by the number of bits; rank of each listed page's first key (empty
//! else). Then the code words, the fragments packed without gaps, and XXH3-64 of everything before.

mod bits;
mod builder;
mod config;
mod decoder;
mod encoder;
mod golomb;
mod huffman;
mod index;
mod key_bits;
mod near_linear;
mod pages;

pub use builder::TrieBuilder;
pub use config::{Granularity, TrieConfig};
pub use index::Trie;
