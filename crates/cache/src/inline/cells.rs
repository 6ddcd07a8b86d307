//! Cells of one size, one after another, bucket by bucket.
//!
//! ```text
//!  cell: [ key ][ value ][ not used ][ key length:8 ][ value length:8 ]
//! ```
//!
//! Beside a writer a cell may contain anything; the bucket's version validates what was read.

use std::io;

use crate::item::Value;
use crate::memory::{PAGE_BYTES, Pages, Ring, UNIT_BYTES};

use super::bucket::CELLS;

/// Maximum bytes of key and value of an item that cells may be for.
pub(crate) const CELL_BYTES_MAX: usize = 240;

/// Bytes of the lengths at a cell's end.
const LENGTHS_BYTES: usize = 2;

/// All cells of a bucket are loaded together, without waiting for its tags, if they take at most this many bytes.
const LOADED_BYTES_MAX: usize = 256;

/// Bytes of a cell with room for `payload` bytes. Whole words under the model checker, which treats each as an object.
const fn stride(payload: usize) -> usize {
    if cfg!(loom) { (payload + LENGTHS_BYTES).next_multiple_of(UNIT_BYTES) } else { payload + LENGTHS_BYTES }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Cells {
    ring: Ring,
    stride: usize,
}

impl Cells {
    /// Empty cells for `buckets` buckets, each with room for `payload` bytes of key and value.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn new(buckets: usize, payload: usize) -> io::Result<Self> {
        debug_assert!(payload <= CELL_BYTES_MAX);
        Ok(Self {
            ring: Ring::new(Self::mapped_bytes(buckets, payload), 0, Pages::Huge)?,
            stride: stride(payload),
        })
    }

    /// Bytes of the cells of one bucket.
    pub const fn bucket_bytes(payload: usize) -> usize {
        CELLS * stride(payload)
    }

    /// Bytes of the cells of `buckets` buckets.
    pub fn mapped_bytes(buckets: usize, payload: usize) -> usize {
        (buckets * Self::bucket_bytes(payload)).next_multiple_of(PAGE_BYTES).max(PAGE_BYTES)
    }

    /// Bytes of key and value that fit in a cell.
    #[inline(always)]
    pub fn payload(&self) -> usize {
        self.stride - LENGTHS_BYTES
    }

    #[inline(always)]
    fn start(&self, bucket: usize, way: usize) -> usize {
        (bucket * CELLS + way) * self.stride
    }

    /// Starts loading a cell.
    #[inline(always)]
    pub fn prefetch(&self, bucket: usize, way: usize) {
        self.ring.prefetch_bytes(self.start(bucket, way), self.stride);
    }

    /// Starts loading cells of a bucket whose tags are not loaded yet: all cells if they are small, otherwise the one
    /// in `home`.
    #[inline(always)]
    pub fn prefetch_ahead(&self, bucket: usize, home: usize) {
        let bytes = CELLS * self.stride;
        if bytes <= LOADED_BYTES_MAX {
            self.ring.prefetch_bytes(self.start(bucket, 0), bytes);
        } else {
            self.prefetch(bucket, home);
        }
    }

    /// The cell in `way`.
    #[inline(always)]
    pub fn cell(&self, bucket: usize, way: usize) -> Cell<'_> {
        let start = self.start(bucket, way);
        let [key_len, value_len] = self.ring.pair(start + self.payload()).map(usize::from);
        Cell { ring: &self.ring, start, key_len, value_len, is_sound: key_len + value_len <= self.payload() }
    }

    /// Writer, within a change of the bucket: writes an item that fits into the cell in `way`.
    #[inline(always)]
    pub fn put(&self, bucket: usize, way: usize, key: &[u8], value: &[u8]) {
        debug_assert!(key.len() + value.len() <= self.payload());
        let start = self.start(bucket, way);
        self.ring.copy_in(start, key);
        self.put_value(start, key.len(), value);
    }

    /// As [`put`](Self::put), over an item of the same key.
    #[inline(always)]
    pub fn put_over(&self, bucket: usize, way: usize, key_len: usize, value: &[u8]) {
        self.put_value(self.start(bucket, way), key_len, value);
    }

    #[inline(always)]
    fn put_value(&self, start: usize, key_len: usize, value: &[u8]) {
        self.ring.copy_in(start + key_len, value);
        self.ring.set_pair(start + self.payload(), [key_len as u8, value.len() as u8]);
    }

    /// Writer, within a change of the bucket: copies the item of one cell into another.
    pub fn copy(&self, bucket: usize, from: usize, to: usize) {
        let mut bytes = [0; CELL_BYTES_MAX + UNIT_BYTES];
        let bytes = &mut bytes[..self.stride];
        self.ring.copy_out(self.start(bucket, from), bytes);
        self.ring.copy_in(self.start(bucket, to), bytes);
    }

    /// Returns all memory to the system, for good.
    pub fn retire(&self) {
        self.ring.retire();
    }

    /// Returns the memory of the buckets `from..end` to the system, as far as they fill whole pages.
    pub fn release(&self, from: usize, end: usize) {
        self.ring.release(self.start(from, 0), (end - from) * CELLS * self.stride);
    }
}

/// The contents of a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell<'a> {
    ring: &'a Ring,
    start: usize,
    key_len: usize,
    value_len: usize,
    /// Whether key and value are within the cell.
    is_sound: bool,
}

impl<'a> Cell<'a> {
    /// Whether the cell's item has this `key`. Then the value is within the cell.
    #[inline(always)]
    pub fn is_of(&self, key: &[u8]) -> bool {
        self.key_len == key.len() && self.is_sound && self.ring.is_equal(self.start, key)
    }

    /// Bytes of the key.
    pub fn key_len(&self) -> usize {
        self.key_len
    }

    /// Copies the key.
    ///
    /// # Panics
    /// If `out` extends beyond the memory, counted from the start of the key.
    pub fn copy_key(&self, out: &mut [u8]) {
        self.ring.copy_out(self.start, out);
    }

    /// The value.
    #[inline(always)]
    pub fn value(&self) -> Value<'a> {
        Value { ring: self.ring, start: self.start + self.key_len, len: self.value_len }
    }

    /// Key and value; `None` if the contents are not an item.
    pub fn parts(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        self.is_sound.then(|| {
            let mut key = vec![0; self.key_len];
            self.copy_key(&mut key);
            (key, self.value().to_vec())
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn parts_of_all_lengths_come_back_and_neighbours_stay() {
        for payload in [0, 1, 16, 17, 30] {
            let cells = Cells::new(2, payload).unwrap();
            let bytes: Vec<u8> = (0x81..).take(payload + 1).collect();
            cells.put(1, 4, &[1; 30][..payload / 2], &[2; 30][..payload / 3]);
            cells.put(1, 6, &[3; 30][..payload / 3], &[4; 30][..payload / 2]);
            let neighbours = || (cells.cell(1, 4).parts(), cells.cell(1, 6).parts());
            let before = neighbours();
            for key_len in 0..=payload {
                let key = &bytes[..key_len];
                for value_len in 0..=payload - key_len {
                    let value: Vec<u8> = bytes[..value_len].iter().map(|byte| byte ^ 0x55).collect();
                    cells.put(1, 5, key, &value);
                    let cell = cells.cell(1, 5);
                    assert_eq!(cell.parts(), Some((key.to_vec(), value.clone())), "{key_len}, {value_len}");
                    assert!(cell.is_of(key));
                    for at in 0..key_len {
                        let mut other = key.to_vec();
                        other[at] ^= 0x40;
                        assert!(!cell.is_of(&other));
                    }
                    assert!(key_len == 0 || !cell.is_of(&key[..key_len - 1]));
                    assert!(!cell.is_of(&bytes[..key_len + 1]));
                    cells.put_over(1, 5, key_len, &value[value_len / 2..]);
                    let expected = Some((key.to_vec(), value[value_len / 2..].to_vec()));
                    assert_eq!(cells.cell(1, 5).parts(), expected);
                    cells.copy(1, 5, 0);
                    assert_eq!(cells.cell(1, 0).parts(), expected);
                }
            }
            assert_eq!(neighbours(), before);
        }
    }

    #[test]
    fn nonsense_is_no_item() {
        let cells = Cells::new(1, 16).unwrap();
        for lengths in [[0xff, 0xff], [0xff, 0], [0, 0xff], [16, 1], [1, 16]] {
            cells.ring.set_pair(16, lengths);
            let cell = cells.cell(0, 0);
            assert_eq!(cell.parts(), None);
            assert!(!cell.is_of(&[0; 16]) && !cell.is_of(&[0]) && !cell.is_of(&[]));
        }
    }
}
