//! Large tables in huge pages: a leaf module of `unsafe` code.
//!
//! A lookup touches one line anywhere in a table of many megabytes; with pages of 4 KiB it also walks page tables.

/// A table of `count` elements, in huge pages if the system permits.
pub(super) fn filled<T>(count: usize, element: impl FnMut(usize) -> T) -> Box<[T]> {
    let mut elements = Vec::with_capacity(count);
    // Before anything is stored, because pages are chosen at the first access.
    advise(&elements);
    elements.extend((0..count).map(element));
    elements.into_boxed_slice()
}

#[cfg(all(target_os = "linux", not(miri)))]
fn advise<T>(elements: &Vec<T>) {
    use rustix::mm::{Advice, madvise};

    const PAGE_BYTES: usize = 4096;
    const HUGE_PAGE_BYTES: usize = 2 << 20;

    let bytes = elements.capacity() * size_of::<T>();
    let start = elements.as_ptr().cast_mut().cast::<u8>();
    let skipped = start.align_offset(PAGE_BYTES);
    if bytes < 2 * HUGE_PAGE_BYTES {
        return;
    }
    let len = (bytes - skipped) / PAGE_BYTES * PAGE_BYTES;
    // SAFETY: the range is whole pages within the vector's allocation, at least 4 MiB from `start` on, of which less
    // than a page is skipped. This advice changes how memory is mapped, never what it holds; where the system refuses
    // it, nothing happens.
    let _ = unsafe { madvise(start.wrapping_add(skipped).cast(), len, Advice::LinuxHugepage) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise<T>(_: &Vec<T>) {}
