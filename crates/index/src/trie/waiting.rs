//! [`Waiting`]: a stack of subtries.

/// Sizes of subtries to be skipped, the next one last. Bounded by the bits of the bucket, one bit for each size.
pub(super) struct Waiting {
    inline: [u32; INLINE],
    count: usize,
    overflow: Vec<u32>,
}

/// More than a uniform bucket needs.
const INLINE: usize = 24;

impl Waiting {
    #[inline]
    pub(super) fn new() -> Self {
        Self { inline: [0; INLINE], count: 0, overflow: Vec::new() }
    }

    /// Adds a subtrie; size 0 adds nothing.
    #[inline]
    pub(super) fn push(&mut self, size: u64) {
        if size == 0 {
            return;
        }
        match self.inline.get_mut(self.count) {
            Some(place) => {
                *place = size as u32;
                self.count += 1;
            }
            None => self.overflow.push(size as u32),
        }
    }

    /// The subtrie that was added last.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<u64> {
        if let Some(size) = self.overflow.pop() {
            return Some(u64::from(size));
        }
        self.count = self.count.checked_sub(1)?;
        self.inline.get(self.count).map(|size| u64::from(*size))
    }
}
