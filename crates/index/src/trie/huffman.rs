//! [`SplitCodes`]: the static Huffman codes of small subtries, and the tables that decode them.
//!
//! In a subtrie of `n` uniform keys the number of keys in the left half follows the binomial distribution, so one code
//! per `n` serves all tries and is never stored. The codes are part of the format: they follow from integer weights
//! only, and a test freezes them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::OnceLock;

/// Maximum number of keys of a subtrie whose split has a Huffman code (`h_max` of the thesis).
pub(super) const HUFFMAN_KEYS_MAX: u64 = 64;

/// Number of bits that index a decode table. Longer codes are 2 to 4 % of all symbols.
const WINDOW_BITS: u32 = 8;
const WINDOWS: usize = 1 << WINDOW_BITS;

/// Maximum length of a code in bits; weights are raised so that none is longer.
const CODE_BITS_MAX: usize = 22;

/// The minimum probability of a symbol is 2^-15, so that no code is longer than `CODE_BITS_MAX`.
const RARE_LOG2: u32 = 15;

/// Sizes 1 to 64; size 1 has no codes. A power of two, so that masked indices need no bounds check.
const SIZES: usize = HUFFMAN_KEYS_MAX as usize;

/// Codes by subtrie size and symbol. The symbol is the number of keys in the left half; 0 also stands for "all of
/// them" (in both cases this bit separates no keys). Codes are written and read from the lowest bit up.
pub(super) struct SplitCodes {
    /// At `(n - 1) · 64 + left`: code in the low 24 bits, its length above.
    codes: [u32; SIZES * 64],
    /// At `(n - 1) · 256 + window`: length in the low 5 bits (0: longer than the window), left above.
    splits: [u16; SIZES * WINDOWS],
    /// At `n · 256 + window`, for `n` below 64: what remains of skipping a subtrie of `n` keys after reading all whole
    /// codes in the window. Bits 0 to 3: bits read, 0 when the first code is longer than the window. Bits 4 and 5:
    /// number of remaining subtries, at most three. Then their sizes in bytes, the next one lowest.
    skips: [u32; SIZES * WINDOWS],
    canonical: Vec<Canonical>,
}

/// Canonical decoding of one size's codes, for those longer than the window.
#[derive(Clone, Default)]
struct Canonical {
    /// By length: first code, number of codes, index of the first one's symbol.
    lengths: [(u32, u32, u32); CODE_BITS_MAX + 1],
    symbols: Vec<u8>,
}

impl SplitCodes {
    /// The codes; computed once per process (about a millisecond).
    pub(super) fn shared() -> &'static Self {
        static SHARED: OnceLock<SplitCodes> = OnceLock::new();
        SHARED.get_or_init(Self::new)
    }

    fn new() -> Self {
        let mut all = Self {
            codes: [0; SIZES * 64],
            splits: [0; SIZES * WINDOWS],
            skips: [0; SIZES * WINDOWS],
            canonical: vec![Canonical::default(); SIZES + 1],
        };
        for n in 2..=SIZES {
            all.add_size(n);
        }
        for n in 2..SIZES {
            for window in 0..WINDOWS {
                all.skips[n * WINDOWS + window] = all.skip_entry(n, window as u64);
            }
        }
        all
    }

    fn add_size(&mut self, n: usize) {
        let lengths = code_lengths(&weights(n));
        let canonical = &mut self.canonical[n];
        let mut code = 0;
        for length in 1..=CODE_BITS_MAX {
            code <<= 1;
            let first = code;
            let first_symbol = canonical.symbols.len() as u32;
            for (left, _) in lengths.iter().enumerate().filter(|(_, symbol_length)| **symbol_length == length)
            {
                let mirrored = u32::reverse_bits(code) >> (32 - length);
                self.codes[(n - 1) * 64 + left] = mirrored | (length as u32) << 24;
                if length <= WINDOW_BITS as usize {
                    for window in (mirrored as usize..WINDOWS).step_by(1 << length) {
                        self.splits[(n - 1) * WINDOWS + window] = (left << 5 | length) as u16;
                    }
                }
                canonical.symbols.push(left as u8);
                code += 1;
            }
            canonical.lengths[length] = (first, code - first, first_symbol);
        }
    }

    fn skip_entry(&self, n: usize, window: u64) -> u32 {
        let mut pending = vec![n];
        let mut read = 0;
        while let Some(&size) = pending.last() {
            let entry = self.splits[(size - 1) * WINDOWS + (window >> read) as usize];
            let (left, length) = (usize::from(entry >> 5), u32::from(entry & 31));
            if length == 0 || read + length > WINDOW_BITS {
                break;
            }
            let mut after = pending.clone();
            if left != 0 {
                after.pop();
                after.extend([size - left, left].into_iter().filter(|size| *size > 1));
            }
            if after.len() > 3 {
                break;
            }
            pending = after;
            read += length;
        }
        let sizes = pending.iter().rev().enumerate().map(|(place, size)| (*size as u32) << (8 + 8 * place));
        if read == 0 { 0 } else { read | (pending.len() as u32) << 4 | sizes.sum::<u32>() }
    }

    /// Code and length of the split of `n` keys, 2 to 64, into `left` and the rest.
    #[inline(always)]
    pub(super) fn code(&self, n: u64, left: u64) -> (u64, u32) {
        let entry = self.codes[((n - 1) * 64 + left) as usize & (SIZES * 64 - 1)];
        (u64::from(entry & 0xff_ffff), entry >> 24)
    }

    /// The split of `n` keys, 2 to 64, whose code starts in the lowest bit of `bits`, and the code's length.
    #[inline(always)]
    pub(super) fn decode(&self, n: u64, bits: u64) -> (u64, u32) {
        let entry = self.splits[row(n.wrapping_sub(1)) | window(bits)];
        if entry & 31 == 0 {
            return self.decode_long(n, bits);
        }
        (u64::from(entry >> 5), u32::from(entry & 31))
    }

    #[cold]
    fn decode_long(&self, n: u64, bits: u64) -> (u64, u32) {
        let canonical = &self.canonical[n as usize];
        let reversed = bits.reverse_bits();
        for length in WINDOW_BITS as usize + 1..=CODE_BITS_MAX {
            let code = (reversed >> (64 - length)) as u32;
            let (first, count, symbol) = canonical.lengths[length];
            if code.wrapping_sub(first) < count {
                return (u64::from(canonical.symbols[(symbol + code - first) as usize]), length as u32);
            }
        }
        // A Huffman code assigns a meaning to all bits; a symbol that ends the walk keeps this function total.
        (0, CODE_BITS_MAX as u32)
    }

    /// The entry of `skips` for a subtrie of `n` keys, below 64, in front of `bits`; 0 for sizes below 2.
    #[inline(always)]
    pub(super) fn skip(&self, n: u64, bits: u64) -> u32 {
        self.skips[row(n) | window(bits)]
    }
}

#[inline(always)]
fn row(index: u64) -> usize {
    (index as usize & (SIZES - 1)) * WINDOWS
}

#[inline(always)]
fn window(bits: u64) -> usize {
    bits as usize & (WINDOWS - 1)
}

/// Weights of the symbols of size `n`: binomial coefficients, with 0 and `n` merged, none below 2^(n-15).
fn weights(n: usize) -> Vec<u128> {
    let floor = (1u128 << n) >> RARE_LOG2;
    let mut weights = vec![2u128];
    let mut coefficient = 1u128;
    for left in 1..n as u128 {
        coefficient = coefficient * (n as u128 + 1 - left) / left;
        weights.push(coefficient);
    }
    weights.into_iter().map(|weight| weight.max(floor)).collect()
}

/// Huffman code lengths; among equal weights the earlier symbol, then the earlier inner node, comes first.
fn code_lengths(weights: &[u128]) -> Vec<usize> {
    let mut heap: BinaryHeap<_> =
        weights.iter().enumerate().map(|(node, &weight)| Reverse((weight, node))).collect();
    let mut parents = vec![0; 2 * weights.len() - 1];
    let mut next = weights.len();
    while let (Some(Reverse((first, a))), Some(Reverse((second, b)))) = (heap.pop(), heap.pop()) {
        parents[a] = next;
        parents[b] = next;
        heap.push(Reverse((first + second, next)));
        next += 1;
        if heap.len() == 1 {
            break;
        }
    }
    let root = next - 1;
    let mut depths = vec![0; next];
    for node in (0..root).rev() {
        depths[node] = depths[parents[node]] + 1;
    }
    depths.truncate(weights.len());
    depths
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_base::checksum::checksum64;

    #[test]
    fn every_code_decodes_to_its_symbol() {
        let codes = SplitCodes::shared();
        for n in 2..=HUFFMAN_KEYS_MAX {
            for left in 0..n {
                let (code, length) = codes.code(n, left);
                for junk in [0, u64::MAX] {
                    assert_eq!(codes.decode(n, code | junk << length), (left, length), "{left} of {n}");
                }
            }
        }
    }

    #[test]
    fn codes_cost_little_more_than_the_entropy() {
        let codes = SplitCodes::shared();
        for n in 2..=HUFFMAN_KEYS_MAX {
            let weights = weights(n as usize);
            let total: f64 = weights.iter().map(|weight| *weight as f64).sum();
            let (mut cost, mut entropy) = (0.0, 0.0);
            for (left, weight) in weights.iter().enumerate() {
                let probability = *weight as f64 / total;
                cost += probability * f64::from(codes.code(n, left as u64).1);
                entropy -= probability * probability.log2();
            }
            assert!(cost < entropy + 0.1, "size {n}: {cost} bits, entropy {entropy}");
        }
    }

    #[test]
    fn codes_are_frozen_because_they_are_on_disk() {
        let mut bytes = Vec::new();
        for n in 2..=HUFFMAN_KEYS_MAX {
            for left in 0..n {
                let (code, length) = SplitCodes::shared().code(n, left);
                bytes.extend_from_slice(&code.to_le_bytes());
                bytes.push(length as u8);
            }
        }
        assert_eq!(checksum64(&bytes, 0), 8_620_446_377_970_944_244);
    }
}
