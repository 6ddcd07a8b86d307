//! Static filter: a filter of any width for keys that are all known, in 1.02 to 1.05 bits for each bit of its width.
//!
//! A standard ribbon filter (Dillinger, Walzer, "Ribbon filter: practically smaller than Bloom and Xor", 2021). Each
//! key gives one equation over bits: among 128 consecutive slots, the sum of those that its coefficients select is its
//! fingerprint of `w` bits. The filter is a solution of all equations. An absent key's equation holds by chance, with a
//! probability of 2^-w.
//!
//! ```text
//!   key ──► start, 128 coefficients, fingerprint
//!             │
//!   slots   . . . [1 0 1 1 0 ... 0 1] . . .       w bits a slot; sum of the slots at ones = fingerprint?
//! ```
//!
//! An alternative to the hash filter (`hash_filter`) for immutable runs: it takes 1.02 to 1.05 × w bits a key for a
//! rate of 2^-w, where cuckoo tags take (w + 3) / 0.95; but it does not say where the key is, takes all keys at once,
//! and is built at a fifth of the speed.
//!
//! # Cost
//!
//! Slots are 1.02 to 1.04 times the keys for thousands to millions of keys, and at least 128. Building does not sort,
//! holds 20 bytes a slot, and takes 130 to 200 ns a key in filters of 32 Ki keys, a microsecond in one of millions, and
//! the same again for each further try. A lookup reads up to three adjacent rows of `w` words: present keys take 23 ns
//! at 4 bits of width and 65 ns at 15; absent ones exit after two bits on average, but an unpredictable branch makes
//! that 36 to 53 ns.
//!
//! # Where we differ
//!
//! - The number of slots is tried from 2 % above the number of keys upwards until the equations have a solution, with a
//!   new seed each time, instead of being derived from a table for a chance of failure.
//! - Rows of 64 slots, each with one word for each bit of the width: fewer slots are lost to rounding than with 128.
//!
//! Considered and rejected: binary fuse filters of four slots a key (Graf, Lemire 2022), which need 14 to 16 % more
//! slots than keys for 32 Ki keys, 24 % for a thousand, by our measurements; bumped ribbon filters, which save the last
//! 4 % at the price of a second structure.
//!
//! # Bytes
//!
//! Little-endian 64-bit words: kind (`0x3149_4d49_5441_5453`), width, keys, slots, seed, rows of 64 slots and
//! `width` words each, XXH3-64 of everything before, seeded with the kind.

mod builder;
mod equation;
mod filter;

pub use filter::{StaticFilter, WIDTH_MAX};
