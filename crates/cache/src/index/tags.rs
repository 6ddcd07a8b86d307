//! Compares all tags of a bucket at once: an unsafe leaf.
//!
//! Sixteen separate comparisons take some seventy instructions, most of a lookup's cost once its memory is in the
//! cache. The compiler must not join atomic loads into wider ones, so the loads are written in assembly.

use std::arch::asm;

use super::bucket::Bucket;

/// Sets bit n when the highest sixteen bits of word n of the bucket are `tag`; the entries are words 1 to 15.
#[inline(always)]
pub(super) fn equal(bucket: &Bucket, tag: u16) -> u32 {
    let equal: u32;
    // The block stands for a relaxed load of each atomic integer: the processor loads each aligned word of up to eight
    // bytes as a whole, also as part of a load of sixteen bytes.
    // SAFETY: reads only the 128 bytes behind the reference, all atomic integers, which the type aligns to 128; writes
    // only registers that it names.
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
            // In each of these the tag is the upper half, which alone determines whether saturation leaves it negative.
            "pcmpeqw {a}, {tags}",
            "pcmpeqw {b}, {tags}",
            "pcmpeqw {c}, {tags}",
            "pcmpeqw {d}, {tags}",
            "packssdw {a}, {b}",
            "packssdw {c}, {d}",
            "packsswb {a}, {c}",
            "pmovmskb {equal:e}, {a}",
            words = in(reg) std::ptr::from_ref(bucket),
            tag = in(reg) u32::from(tag) << 16,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::bucket::WAYS;
    use crate::index::entry::Entry;

    #[test]
    fn every_word_is_told_from_the_others() {
        for tag in [1, 0x7fff, 0x8000, 0xffff, 0] {
            for mask in [0, 1, 1 << 14, 0x7fff, 0x5555, 0x1234, 0x4001] {
                let other = u64::from(tag ^ 0x0100) << 48 | u64::from(tag);
                let bucket = Bucket::empty();
                for way in 0..WAYS {
                    let same = u64::from(tag) << 48 | (u64::MAX >> 16);
                    bucket.set_entry(way, Entry(if mask >> way & 1 == 1 { same } else { other }));
                }
                assert_eq!(equal(&bucket, tag) >> 1, mask, "{tag:x}");
            }
        }
    }
}
