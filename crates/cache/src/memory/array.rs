//! A fixed array of elements that are initially zero: buckets of indexes, ghosts.

use std::io;
use std::ops::Deref;

/// A type of which an [`Array`] may consist.
///
/// # Safety
/// All bytes zero is a valid value, equal to `blank()`; there is no drop glue; the alignment is at most a page.
pub(crate) unsafe trait Element: Send + Sync {
    /// The initial value of every element.
    #[cfg(any(not(target_os = "linux"), miri, loom))]
    fn blank() -> Self;
}

/// `len` elements, shared as far as their own interior mutability allows.
#[derive(Debug)]
pub(crate) struct Array<T> {
    #[cfg(all(target_os = "linux", not(miri), not(loom)))]
    mapping: super::mapped::Mapping,
    #[cfg(all(target_os = "linux", not(miri), not(loom)))]
    elements: std::ptr::NonNull<[T]>,
    #[cfg(any(not(target_os = "linux"), miri, loom))]
    elements: Box<[T]>,
}

// SAFETY: the array owns its elements, which may move between threads.
unsafe impl<T: Element> Send for Array<T> {}
// SAFETY: a shared array only gives out shared elements, which may be shared between threads.
unsafe impl<T: Element> Sync for Array<T> {}

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
impl<T: Element> Array<T> {
    /// `len` blank elements; memory becomes resident when it is touched.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn new(len: usize) -> io::Result<Self> {
        Self::with_pages(len, super::Pages::Huge)
    }

    /// As [`new`](Self::new), for an array whose used part begins small and doubles: the first 2 MiB have small pages,
    /// so that no more is resident than is used.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn doubling(len: usize) -> io::Result<Self> {
        let array = Self::with_pages(len, super::Pages::AsUsed)?;
        array.mapping.use_huge_pages(super::HUGE_PAGE_BYTES, 0, Self::mapped_bytes(len));
        Ok(array)
    }

    fn with_pages(len: usize, pages: super::Pages) -> io::Result<Self> {
        let mapping = super::mapped::Mapping::anonymous(Self::mapped_bytes(len), pages)?;
        let elements = std::ptr::NonNull::slice_from_raw_parts(mapping.start().cast(), len);
        Ok(Self { mapping, elements })
    }

    /// Returns the memory to the system, for good. All elements are blank afterwards, also for readers that still hold
    /// references to them.
    pub fn retire(&self) {
        self.mapping.retire();
    }

    /// As [`retire`](Self::retire), but not for good, for the elements `from..end`, as far as they fill whole pages.
    pub fn release_part(&self, from: usize, end: usize) {
        self.mapping.release(from * size_of::<T>(), (end - from) * size_of::<T>());
    }
}

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `new` mapped memory for this many elements, page-aligned and zeroed, which is a valid value of each
        // by the contract of `Element`; it stays mapped while `mapping` lives, and no code creates exclusive
        // references.
        unsafe { self.elements.as_ref() }
    }
}

#[cfg(any(not(target_os = "linux"), miri, loom))]
impl<T: Element> Array<T> {
    /// `len` blank elements.
    pub fn new(len: usize) -> io::Result<Self> {
        Ok(Self { elements: (0..len).map(|_| T::blank()).collect() })
    }

    /// The same.
    pub fn doubling(len: usize) -> io::Result<Self> {
        Self::new(len)
    }

    /// Does nothing: the memory is freed with the array.
    pub fn retire(&self) {}

    /// Does nothing, likewise.
    pub fn release_part(&self, _from: usize, _end: usize) {}
}

#[cfg(any(not(target_os = "linux"), miri, loom))]
impl<T> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.elements
    }
}

impl<T> Array<T> {
    /// Bytes that `len` elements take.
    pub fn mapped_bytes(len: usize) -> usize {
        (len * size_of::<T>()).next_multiple_of(super::PAGE_BYTES).max(super::PAGE_BYTES)
    }
}
