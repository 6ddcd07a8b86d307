//! The same as in [`vectors`](super::vectors) for long copies, thirty-two bytes at a time, where the processor can: an
//! unsafe leaf.
//!
//! What a copy stores waits in the core until the cache has it. A value of a kilobyte in sixteens fills all the places
//! that processors of today have for that, and so keeps them from beginning the next operation meanwhile.

use std::arch::asm;
use std::arch::x86_64::{__m256i, _mm256_zeroupper};

const VECTOR: usize = size_of::<__m256i>();
const GROUP: usize = 4 * VECTOR;

/// Bytes from which on a call and a question about the processor are little.
const WORTHWHILE_MIN: usize = 2 * GROUP;

/// Whether a copy of `len` bytes may begin with [`copy`].
#[inline(always)]
pub(super) fn is_worthwhile(len: usize) -> bool {
    len >= WORTHWHILE_MIN && is_x86_feature_detected!("avx")
}

/// Copies most of `len` bytes from `from` on to `to` and what follows, and returns how many: all but less than 128.
///
/// # Safety
/// [`is_worthwhile`] was true. The bytes at `from` and `to` are mapped, and only accessed atomically or by functions of
/// this module and `vectors` while somebody else may write those at `from` or read those at `to`.
#[target_feature(enable = "avx")]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) -> usize {
    let copied = len - len % GROUP;
    for at in (0..copied).step_by(GROUP) {
        // SAFETY: the group lies within the caller's bytes; registers are named.
        unsafe {
            asm!(
                "vmovups {a}, [{from}]",
                "vmovups {b}, [{from} + 32]",
                "vmovups {c}, [{from} + 64]",
                "vmovups {d}, [{from} + 96]",
                "vmovups [{to}], {a}",
                "vmovups [{to} + 32], {b}",
                "vmovups [{to} + 64], {c}",
                "vmovups [{to} + 96], {d}",
                from = in(reg) from.add(at),
                to = in(reg) to.add(at),
                a = out(ymm_reg) _,
                b = out(ymm_reg) _,
                c = out(ymm_reg) _,
                d = out(ymm_reg) _,
                options(nostack, preserves_flags),
            );
        }
    }
    // Left with upper halves in use, Intel's processors take tens of nanoseconds to come back to narrower instructions,
    // and as many for the next copy. The compiler, which would see to it, doesn't look into `asm!`.
    _mm256_zeroupper();
    copied
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::arch::x86_64::{__cpuid_count, _xgetbv};

    use super::*;

    /// Bit of the upper halves among the parts of the processor's state.
    const UPPER_HALVES: u64 = 1 << 2;

    /// Which parts of the state are in use, by a processor that tells.
    ///
    /// # Safety
    /// There is `xgetbv` with parameter 1.
    #[target_feature(enable = "xsave")]
    unsafe fn parts_in_use() -> u64 {
        // SAFETY: the caller's promise.
        unsafe { _xgetbv(1) }
    }

    /// Whether the processor has `xgetbv` with parameter 1.
    #[allow(unused_unsafe, reason = "unsafe in older versions of Rust")]
    fn tells() -> bool {
        const LEAF: u32 = 0xd;
        // SAFETY: every processor of 64 bits has the instruction, and those with `xsave` the leaf.
        is_x86_feature_detected!("xsave") && unsafe { __cpuid_count(LEAF, 1) }.eax & 1 << 2 != 0
    }

    #[target_feature(enable = "avx")]
    fn clear() {
        _mm256_zeroupper();
    }

    #[test]
    fn a_copy_leaves_no_upper_halves_in_use() {
        const LEN: usize = 2 * WORTHWHILE_MIN;
        let (from, mut to) = ([7; LEN], [0; LEN]);
        if !is_worthwhile(LEN) || !tells() {
            return;
        }
        // SAFETY: the processor has AVX, and tells; the arrays have so many bytes, and are this test's own.
        let (before, copied, after) = unsafe {
            clear();
            let before = parts_in_use();
            let copied = copy(from.as_ptr(), to.as_mut_ptr(), LEN);
            (before, copied, parts_in_use())
        };
        assert_eq!((copied, to), (LEN, from));
        // Unless it says so of halves that were just cleared.
        assert!(before & UPPER_HALVES != 0 || after & UPPER_HALVES == 0, "{after:b}");
    }
}
