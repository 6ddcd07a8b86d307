//! Compares the tags of a line all at once: an unsafe leaf.
//!
//! Seven separate comparisons are some forty instructions, half of the cost of a hit once memory is in the cache. The
//! compiler may not join atomic loads into wider ones; so the loads are written out.

use std::arch::asm;

use super::line::Line;

/// Bit n is set when the highest sixteen bits of word n of the line are `tag`; the entries are words 1 to 7.
#[inline(always)]
pub(super) fn equal(line: &Line, tag: u16) -> u32 {
    let equal: u32;
    // SAFETY: reads the 64 bytes behind the reference, aligned to 64 by the type, and writes only registers that it
    // names. They are eight atomic integers, and to the language it is a relaxed load of each: the processor loads each
    // aligned word of eight bytes whole, also as a part of sixteen bytes.
    unsafe {
        asm!(
            "movd {tags}, {tag:e}",
            "pshufd {tags}, {tags}, 0",
            "movaps {a}, [{words}]",
            "movaps {b}, [{words} + 32]",
            // The upper halves of four words side by side.
            "shufps {a}, [{words} + 16], 0xdd",
            "shufps {b}, [{words} + 48], 0xdd",
            // In each of these the tag is the upper half, which alone says whether saturation leaves it negative.
            "pcmpeqw {a}, {tags}",
            "pcmpeqw {b}, {tags}",
            "packssdw {a}, {b}",
            "packsswb {a}, {a}",
            "pmovmskb {equal:e}, {a}",
            words = in(reg) std::ptr::from_ref(line),
            tag = in(reg) u32::from(tag) << 16,
            tags = out(xmm_reg) _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            equal = out(reg) equal,
            options(nostack, readonly, preserves_flags, pure),
        );
    }
    equal & 0xff
}
