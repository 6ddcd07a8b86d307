//! Comparing the tags of a bucket all at once: an unsafe leaf.
//!
//! Sixteen comparisons one by one are some seventy instructions, most of what a lookup takes once memory is in the
//! cache. The compiler may not join atomic loads into wider ones; so the loads are written out.

use std::arch::asm;

use crate::sync::AtomicU64;

/// Bit n is set when the highest sixteen bits of word n are `tag`.
#[inline(always)]
pub(super) fn equal(words: &[AtomicU64; 16], tag: u16) -> u32 {
    let equal: u32;
    // SAFETY: the block reads the 128 bytes behind the reference, which are aligned to 16 by `aligned` below, and
    // nothing else; it writes registers that it names. To the language it stands for sixteen relaxed atomic loads:
    // the processor loads each aligned word of eight bytes whole, also as a part of sixteen.
    unsafe {
        asm!(
            "movd {tags}, {tag:e}",
            "pshufd {tags}, {tags}, 0",
            "movaps {a}, [{words}]",
            "movaps {b}, [{words} + 32]",
            "movaps {c}, [{words} + 64]",
            "movaps {d}, [{words} + 96]",
            // The upper halves of four words side by side.
            "shufps {a}, [{words} + 16], 0xdd",
            "shufps {b}, [{words} + 48], 0xdd",
            "shufps {c}, [{words} + 80], 0xdd",
            "shufps {d}, [{words} + 112], 0xdd",
            "psrld {a}, 16",
            "psrld {b}, 16",
            "psrld {c}, 16",
            "psrld {d}, 16",
            "pcmpeqd {a}, {tags}",
            "pcmpeqd {b}, {tags}",
            "pcmpeqd {c}, {tags}",
            "pcmpeqd {d}, {tags}",
            // All ones or all zeros, which saturation leaves as they are.
            "packssdw {a}, {b}",
            "packssdw {c}, {d}",
            "packsswb {a}, {c}",
            "pmovmskb {equal:e}, {a}",
            words = in(reg) aligned(words),
            tag = in(reg) u32::from(tag),
            tags = out(xmm_reg) _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            equal = out(reg) equal,
            options(nostack, readonly, preserves_flags, pure),
        );
    }
    equal
}

/// The words' address.
///
/// # Panics
/// In debug builds when it is not a multiple of 16, which it is for every bucket.
#[inline(always)]
fn aligned(words: &[AtomicU64; 16]) -> *const AtomicU64 {
    let pointer = words.as_ptr();
    debug_assert!(pointer.addr().is_multiple_of(16));
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(128))]
    struct Aligned([AtomicU64; 16]);

    #[test]
    fn every_word_is_told_from_the_others() {
        for tag in [1, 0x7fff, 0x8000, 0xffff, 0] {
            for mask in [0, 1, 1 << 15, 0xffff, 0x5555, 0x1234, 0x8001] {
                let other = u64::from(tag ^ 0x0100) << 48 | u64::from(tag);
                let words = Aligned(std::array::from_fn(|way| {
                    let same = u64::from(tag) << 48 | (u64::MAX >> 16);
                    AtomicU64::new(if mask >> way & 1 == 1 { same } else { other })
                }));
                assert_eq!(equal(&words.0, tag), mask, "{tag:x}");
            }
        }
    }
}
