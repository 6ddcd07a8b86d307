//! Compares all tags of an inline bucket at once: an unsafe leaf like `index/tags.rs`.

use std::arch::asm;

use super::bucket::InlineBucket;

/// Sets bit n when 16-bit number n of the bucket is `tag`; the first twelve are the tags.
#[inline(always)]
pub(super) fn equal(bucket: &InlineBucket, tag: u16) -> u32 {
    let equal: u32;
    // SAFETY: reads only the 32 bytes behind the reference, which the type aligns to 32, and writes only registers that
    // it names. The bytes are atomic integers, and to the language the block stands for a relaxed load of each: the
    // processor loads each aligned word of up to eight bytes as a whole, also as part of a load of sixteen bytes.
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
