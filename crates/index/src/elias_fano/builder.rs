//! [`EliasFanoBuilder`]: numbers in, list out.

use super::differences::Differences;
use super::list::EliasFano;

/// Collects non-decreasing numbers for an [`EliasFano`] list whose length and largest number are not known before the
/// last one. Holds the differences as varints, so it takes little more than the finished list.
#[derive(Clone, Debug, Default)]
pub struct EliasFanoBuilder {
    values: Differences,
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
        self.values.push(value);
    }

    /// Numbers so far.
    pub fn len(&self) -> u64 {
        self.values.len()
    }

    /// Whether there are no numbers yet.
    pub fn is_empty(&self) -> bool {
        self.values.len() == 0
    }

    /// Bytes held now.
    pub fn memory_bytes(&self) -> u64 {
        self.values.memory_bytes()
    }

    /// The list. Linear in the count.
    pub fn finish(self) -> EliasFano {
        EliasFano::from_sorted(self.values.iter(), self.values.len(), self.values.last())
    }
}
