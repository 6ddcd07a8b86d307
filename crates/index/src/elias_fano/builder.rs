//! [`EliasFanoBuilder`]: numbers in, list out.

use alluvium_base::varint;

use super::list::EliasFano;

/// Collects non-decreasing numbers for an [`EliasFano`] list whose length and largest number are not known before the
/// last one. Holds the differences as varints, so it takes little more than the finished list.
#[derive(Clone, Debug, Default)]
pub struct EliasFanoBuilder {
    differences: Vec<u8>,
    last: u64,
    count: u64,
}

impl EliasFanoBuilder {
    /// A builder without numbers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends `value`.
    ///
    /// # Panics
    /// When `value` is below the one before it.
    pub fn push(&mut self, value: u64) {
        assert!(
            value >= self.last,
            "numbers of an Elias-Fano list don't decrease: {value} after {}",
            self.last
        );
        varint::write(value - self.last, &mut self.differences);
        self.last = value;
        self.count += 1;
    }

    /// Numbers so far.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are no numbers yet.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The last number pushed, 0 before the first.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Bytes held now.
    pub fn memory_bytes(&self) -> u64 {
        self.differences.capacity() as u64
    }

    /// The list. Linear in the count.
    pub fn finish(self) -> EliasFano {
        let mut rest = self.differences.as_slice();
        let mut value = 0;
        let values = std::iter::from_fn(move || {
            let (difference, length) = varint::read(rest)?;
            rest = rest.get(length..)?;
            value += difference;
            Some(value)
        });
        EliasFano::from_sorted(values, self.count, self.last)
    }
}
