//! A key and its value side by side in sixteen bytes.

/// Bytes of key and value of an item that fits in a cell, together.
pub(crate) const CELL_BYTES: usize = 16;

/// The contents of a cell. Beside a writer they may be anything until the read was validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The key's bytes from the lowest on, then the value's, then zeros.
    pub bytes: u128,
    pub lengths: Lengths,
}

/// Bytes of the key, and of key and value together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lengths(pub u16);

impl Lengths {
    /// `None` if they are more than fit.
    #[inline(always)]
    fn new(key_len: usize, value_len: usize) -> Option<Self> {
        let both = key_len.checked_add(value_len).filter(|&both| both <= CELL_BYTES)?;
        Some(Self((key_len | both << 8) as u16))
    }

    #[inline(always)]
    pub fn key_len(self) -> usize {
        usize::from(self.0 & 0xff)
    }

    /// At most [`CELL_BYTES`], whatever was read.
    #[inline(always)]
    pub fn value_len(self) -> usize {
        usize::from(self.0 >> 8).wrapping_sub(self.key_len()).min(CELL_BYTES)
    }
}

impl Cell {
    /// A cell of these contents; `None` if they don't fit.
    #[inline(always)]
    pub fn new(key: &[u8], value: &[u8]) -> Option<Self> {
        let lengths = Lengths::new(key.len(), value.len())?;
        let value = packed(value).checked_shl(8 * key.len() as u32).unwrap_or(0);
        Some(Self { bytes: packed(key) | value, lengths })
    }

    /// Whether it is the cell of `key`, which is of [`CELL_BYTES`] bytes at most.
    #[inline(always)]
    pub fn is_of(&self, key: &[u8]) -> bool {
        // The bytes behind the key are shifted out of both.
        let unused_bits = (8 * (CELL_BYTES - key.len())) as u32;
        let difference = self.bytes ^ packed(key);
        self.lengths.key_len() == key.len() && difference.checked_shl(unused_bits).unwrap_or(0) == 0
    }

    /// The value's bytes, from the lowest on.
    #[inline(always)]
    pub fn value_bits(&self) -> u128 {
        self.bytes.checked_shr(8 * self.lengths.key_len() as u32).unwrap_or(0)
    }

    /// Bytes of the value.
    #[inline(always)]
    pub fn value_len(&self) -> usize {
        self.lengths.value_len()
    }

    /// Key and value.
    pub fn parts(&self) -> (Vec<u8>, Vec<u8>) {
        let part = |bits: u128, len: usize| bits.to_le_bytes()[..len.min(CELL_BYTES)].to_vec();
        (part(self.bytes, self.lengths.key_len()), part(self.value_bits(), self.value_len()))
    }
}

/// At most sixteen bytes as a number, the first lowest. In few instructions, which a copy of unknown length is not.
#[inline(always)]
fn packed(bytes: &[u8]) -> u128 {
    let len = bytes.len();
    if let Ok(word) = <[u8; 8]>::try_from(bytes) {
        return u128::from(u64::from_le_bytes(word));
    }
    // Both ends, which overlap where there are fewer bytes: there they agree.
    if let (Some(&first), Some(&last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        let shift = 8 * (len as u32 - 8);
        return u128::from(u64::from_le_bytes(first)) | u128::from(u64::from_le_bytes(last)) << shift;
    }
    if let (Some(&first), Some(&last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let shift = 8 * (len as u32 - 4);
        return u128::from(u32::from_le_bytes(first)) | u128::from(u32::from_le_bytes(last)) << shift;
    }
    bytes.iter().rev().fold(0, |packed, &byte| packed << 8 | u128::from(byte))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn parts_of_all_lengths_come_back() {
        let bytes: Vec<u8> = (0x81..).take(CELL_BYTES + 1).collect();
        for key_len in 0..=CELL_BYTES {
            let key = &bytes[..key_len];
            for value_len in 0..=CELL_BYTES - key_len {
                let value: Vec<u8> = bytes[..value_len].iter().map(|byte| byte ^ 0x55).collect();
                let cell = Cell::new(key, &value).unwrap();
                assert_eq!(cell.parts(), (key.to_vec(), value), "{key_len} and {value_len}");
                assert!(cell.is_of(key));
                for at in 0..key_len {
                    let mut other = key.to_vec();
                    other[at] ^= 0x40;
                    assert!(!cell.is_of(&other));
                }
                if key_len > 0 {
                    assert!(!cell.is_of(&key[..key_len - 1]));
                }
                if key_len < CELL_BYTES {
                    assert!(!cell.is_of(&bytes[..key_len + 1]));
                }
            }
            assert_eq!(Cell::new(key, &bytes[..CELL_BYTES + 1 - key_len]), None);
        }
    }

    #[test]
    fn nonsense_has_bounds() {
        for lengths in [0, 0xffff, 0xff00, 0x00ff, 0x0110, 0x1001] {
            let cell = Cell { bytes: u128::MAX, lengths: Lengths(lengths) };
            let (key, value) = cell.parts();
            assert!(key.len() <= CELL_BYTES && value.len() <= CELL_BYTES);
            assert!(cell.value_len() <= CELL_BYTES && !cell.is_of(b"12345678"));
        }
    }
}
