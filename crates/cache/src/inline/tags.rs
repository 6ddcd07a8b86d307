//! Comparing the tags of an inline bucket all at once: an unsafe leaf, as `index/tags.rs` is.

use std::arch::asm;

use super::bucket::InlineBucket;

/// Bit n is set when 16-bit number n of the bucket is `tag`; the first twelve are the tags.
#[inline(always)]
pub(super) fn equal(bucket: &InlineBucket, tag: u16) -> u32 {
    let equal: u32;
    // SAFETY: reads the 32 bytes behind the reference, aligned to 32 by the type, and writes only
    // registers that it names. They are atomic integers, and to the language it is a relaxed load of each: the
    // processor loads each aligned word of up to eight bytes whole, also as a part of sixteen bytes.
    unsafe {
        asm!(
            "movd {tags}, {tag:e}",
            "pshuflw {tags}, {tags}, 0",
            "punpcklqdq {tags}, {tags}",
            "movdqa {a}, [{bucket}]",
            "movdqa {b}, [{bucket} + 16]",
            "pcmpeqw {a}, {tags}",
            "pcmpeqw {b}, {tags}",
            "packsswb {a}, {b}",
            "pmovmskb {equal:e}, {a}",
            bucket = in(reg) std::ptr::from_ref(bucket),
            tag = in(reg) u32::from(tag),
            tags = out(xmm_reg) _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            equal = out(reg) equal,
            options(nostack, readonly, preserves_flags, pure),
        );
    }
    equal
}
