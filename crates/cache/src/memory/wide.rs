//! The same as [`vectors`](super::vectors) for long copies, thirty-two bytes at a time, on processors that can: an
//! unsafe leaf.
//!
//! The stores of a copy wait in the core until the cache has accepted them. A value of a kilobyte in vectors of sixteen
//! bytes fills all the buffers that today's processors have for that, and so keeps the next operation from starting
//! meanwhile.

use std::arch::asm;
use std::arch::x86_64::{__m256i, _mm256_zeroupper};

const VECTOR: usize = size_of::<__m256i>();
const GROUP: usize = 4 * VECTOR;

/// Copies of at least this size outweigh the cost of a call and of checking for the processor's feature.
const WORTHWHILE_MIN: usize = 2 * GROUP;

/// Whether a copy of `len` bytes may begin with [`copy`].
#[inline(always)]
pub(super) fn is_worthwhile(len: usize) -> bool {
    len >= WORTHWHILE_MIN && is_x86_feature_detected!("avx")
}

/// Copies all but less than 128 of `len` bytes from `from` to `to`, and returns how many it copied.
///
/// # Safety
/// [`is_worthwhile`] was true. The bytes at `from` and `to` are mapped, and accessed only atomically or by functions of
/// this module and `vectors` while any other thread may write those at `from` or read those at `to`.
#[target_feature(enable = "avx")]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) -> usize {
    let copied = len - len % GROUP;
    for at in (0..copied).step_by(GROUP) {
        // SAFETY: the group is within the caller's bytes; registers are named.
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
    // If the upper halves stay in use, Intel's processors take tens of nanoseconds to return to narrower instructions,
    // and as many at the next copy. The compiler would clear them, but does not look into `asm!`.
    _mm256_zeroupper();
    copied
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::arch::x86_64::{__cpuid_count, _xgetbv};

    use super::*;

    /// Bit of the upper halves in the processor's state components.
    const UPPER_HALVES: u64 = 1 << 2;

    /// Which state components are in use, on a processor that reports it.
    ///
    /// # Safety
    /// The processor has `xgetbv` with parameter 1.
    #[target_feature(enable = "xsave")]
    unsafe fn parts_in_use() -> u64 {
        // SAFETY: the caller's guarantee.
        unsafe { _xgetbv(1) }
    }

    /// Whether the processor has `xgetbv` with parameter 1.
    #[allow(unused_unsafe, reason = "unsafe in older versions of Rust")]
    fn tells() -> bool {
        const LEAF: u32 = 0xd;
        // SAFETY: every 64-bit processor has the instruction, and those with `xsave` the leaf.
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
        // SAFETY: the processor has AVX and reports the components in use; the arrays have this many bytes and belong
        // to this test.
        let (before, copied, after) = unsafe {
            clear();
            let before = parts_in_use();
            let copied = copy(from.as_ptr(), to.as_mut_ptr(), LEN);
            (before, copied, parts_in_use())
        };
        assert_eq!((copied, to), (LEN, from));
        // Unless it reports halves in use that were just cleared.
        assert!(before & UPPER_HALVES != 0 || after & UPPER_HALVES == 0, "{after:b}");
    }
}
