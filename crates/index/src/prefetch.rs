//! A hint to the processor that a memory location will be read soon.
//!
//! A leaf module of `unsafe` code: a prefetch changes no value and faults on no address, so the surface is safe. On
//! processors without a known instruction it does nothing.

/// Starts loading the cache line of `slice[index]`. An `index` past the end is a wasted hint, not an error.
#[inline(always)]
pub fn prefetch_element<T>(slice: &[T], index: usize) {
    prefetch_address(slice.as_ptr().wrapping_add(index));
}

/// Starts loading the cache line at an address. One where nothing is mapped is a wasted hint, not an error.
#[inline(always)]
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(unused_variables))]
pub fn prefetch_address<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: PREFETCHT0 dereferences nothing: the processor drops the hint when the address is not mapped, so any
    // pointer may be passed. SSE is part of the x86_64 baseline.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: PRFM dereferences nothing and raises no fault on any address; the block changes neither memory, flags
    // nor stack, as its options state.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{address}]",
            address = in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(miri)]
    let _ = address;
}

/// Like [`prefetch_element`], for data that is used later: into a cache beyond the nearest.
#[inline(always)]
pub fn prefetch_element_far<T>(slice: &[T], index: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: as for `prefetch_element`.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(slice.as_ptr().wrapping_add(index).cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    prefetch_element(slice, index);
}

/// Starts loading the lines of `bytes[start..start + len]`, at most four: the processor's own prefetching covers the
/// rest.
#[inline(always)]
pub fn prefetch_bytes(bytes: &[u8], start: usize, len: usize) {
    const LINE_BYTES: usize = 64;
    const LINES_MAX: usize = 4;
    let last = start + len.clamp(1, LINES_MAX * LINE_BYTES) - 1;
    let mut place = start;
    while place < last {
        prefetch_element(bytes, place);
        place += LINE_BYTES;
    }
    prefetch_element(bytes, last);
}
