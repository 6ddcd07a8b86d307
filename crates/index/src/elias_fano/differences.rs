//! [`Differences`]: a growing non-decreasing list, stored as varints until its length and end are known.

use alluvium_base::varint;

/// Non-decreasing numbers as varints of their differences, one to two bytes each for the lists of an index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Differences {
    bytes: Vec<u8>,
    last: u64,
    count: u64,
}

impl Differences {
    /// Appends `value`.
    ///
    /// # Panics
    /// When `value` is below the one before it.
    pub(crate) fn push(&mut self, value: u64) {
        assert!(value >= self.last, "numbers of a list don't decrease: {value} after {}", self.last);
        varint::write(value - self.last, &mut self.bytes);
        self.last = value;
        self.count += 1;
    }

    /// Number of numbers.
    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    /// The last number, 0 before the first.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + Clone + '_ {
        let mut rest = self.bytes.as_slice();
        let mut value = 0;
        std::iter::from_fn(move || {
            let (difference, length) = varint::read(rest)?;
            rest = rest.get(length..)?;
            value += difference;
            Some(value)
        })
    }

    /// Bytes held now.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.bytes.capacity() as u64
    }
}
