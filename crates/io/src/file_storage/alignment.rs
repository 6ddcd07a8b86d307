//! What direct I/O on a file demands, and the aligned span around an unaligned range.

use crate::ALIGNMENT;

/// Alignment that the file system demands of direct I/O, in bytes; both are powers of two and at most [`ALIGNMENT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DirectAlignment {
    /// Alignment of memory addresses.
    pub(super) memory: usize,
    /// Alignment of file offsets and lengths.
    pub(super) offset: usize,
}

impl DirectAlignment {
    /// What practically every device accepts, for kernels that cannot be asked.
    pub(super) const PAGE: Self = Self { memory: ALIGNMENT, offset: ALIGNMENT };

    /// Converts the figures of the kernel; `None` if direct I/O is impossible or needs more than [`ALIGNMENT`].
    #[cfg(any(target_os = "linux", test))]
    pub(super) fn new(memory: u32, offset: u32) -> Option<Self> {
        let (memory, offset) = (memory as usize, offset as usize);
        let usable = |value: usize| value.is_power_of_two() && value <= ALIGNMENT;
        (usable(memory) && usable(offset)).then_some(Self { memory, offset })
    }

    /// Whether bytes at `pointer` can go to or come from `offset` without a bounce copy.
    #[inline]
    pub(super) fn allows(self, pointer: *const u8, len: usize, offset: u64) -> bool {
        pointer.addr() & (self.memory - 1) == 0 && (len | offset as usize) & (self.offset - 1) == 0
    }
}

/// The smallest range of whole blocks around `offset..offset + len`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Where the span starts in the file.
    pub(super) start: u64,
    /// Its length in bytes.
    pub(super) len: usize,
    /// Bytes of the span before the wanted range.
    pub(super) skip: usize,
}

impl Span {
    /// `block` is a power of two. `None` when the span does not fit the address space.
    pub(super) fn around(offset: u64, len: usize, block: usize) -> Option<Self> {
        let skip = (offset & (block as u64 - 1)) as usize;
        let len = len.checked_add(skip)?.checked_next_multiple_of(block)?;
        Some(Self { start: offset - skip as u64, len, skip })
    }

    /// How many of `wanted` bytes a read of `got` bytes of the span holds.
    pub(super) fn usable(self, got: usize, wanted: usize) -> usize {
        got.saturating_sub(self.skip).min(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_span_covers_its_range_with_less_than_a_block_to_spare_at_each_end(
            offset in 0u64..1 << 40, len in 1usize..100_000, shift in 0u32..13,
        ) {
            let block = 1usize << shift;
            let span = Span::around(offset, len, block).unwrap();
            prop_assert_eq!(span.start % block as u64, 0);
            prop_assert_eq!(span.len % block, 0);
            prop_assert_eq!(span.start + span.skip as u64, offset);
            prop_assert!(span.skip < block);
            prop_assert!(span.len >= span.skip + len && span.len < span.skip + len + block);
        }
    }

    #[test]
    fn unusable_alignments_are_refused() {
        assert_eq!(DirectAlignment::new(0, 0), None);
        assert_eq!(DirectAlignment::new(512, 65536), None);
        assert_eq!(DirectAlignment::new(512, 512), Some(DirectAlignment { memory: 512, offset: 512 }));
    }
}
