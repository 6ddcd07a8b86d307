//! A region as bytes, for checkpoints of a directory.

use alluvium_base::Corruption;
use alluvium_base::checksum::checksum64;

use super::{ChainRegion, SlotShape};

/// "CHAINRG1".
const KIND: u64 = u64::from_le_bytes(*b"CHAINRG1");
const HEADER_BYTES: usize = 8 + 1 + 1 + 8;
const CHECKSUM_BYTES: usize = 8;

impl ChainRegion {
    /// The shape of the slots of the region at the start of `bytes`, whether or not it is sound. `None` if there is
    /// none.
    pub fn shape_in(bytes: &[u8]) -> Option<SlotShape> {
        let shape =
            SlotShape { pointer_bytes: (*bytes.get(8)?).into(), filter_bytes: (*bytes.get(9)?).into() };
        shape.is_supported().then_some(shape)
    }

    /// Appends the region as bytes.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&KIND.to_le_bytes());
        out.push(self.shape.pointer_bytes as u8);
        out.push(self.shape.filter_bytes as u8);
        out.extend_from_slice(&(self.len as u64).to_le_bytes());
        out.extend_from_slice(&self.slots);
        let checksum = checksum64(&out[start..], KIND);
        out.extend_from_slice(&checksum.to_le_bytes());
    }

    /// Reads the region at the start of `bytes`, for keys that share their first `prefix_bits` hash bits. Also returns
    /// the number of bytes that it took.
    ///
    /// # Errors
    /// [`Corruption`] if there is no sound region of this shape.
    pub fn read_from(bytes: &[u8], shape: SlotShape, prefix_bits: u32) -> Result<(Self, usize), Corruption> {
        let bad = |offset: usize, expected: String, found: String| {
            Err(Corruption::new("region", offset as u64, expected, found))
        };
        let Some(header) = bytes.get(..HEADER_BYTES) else {
            return bad(0, format!("a header of {HEADER_BYTES} bytes"), format!("{} bytes", bytes.len()));
        };
        let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        if number(0) != KIND {
            return bad(0, "a region of chains".to_owned(), format!("{:#x}", number(0)));
        }
        let found = SlotShape { pointer_bytes: header[8].into(), filter_bytes: header[9].into() };
        if found != shape || !shape.is_supported() {
            return bad(8, format!("{shape:?}"), format!("{found:?}"));
        }
        let slots_end = usize::try_from(number(10))
            .ok()
            .filter(|&len| shape.is_possible(len))
            .and_then(|len| len.checked_mul(shape.slot_bytes())?.checked_add(HEADER_BYTES));
        let end = slots_end.and_then(|slots_end| slots_end.checked_add(CHECKSUM_BYTES));
        let (Some(slots_end), Some(end)) = (slots_end, end.filter(|&end| end <= bytes.len())) else {
            return bad(10, format!("slots within {} bytes", bytes.len()), number(10).to_string());
        };
        let stored = u64::from_le_bytes(bytes[slots_end..end].try_into().expect("eight bytes"));
        let computed = checksum64(&bytes[..slots_end], KIND);
        if stored != computed {
            return bad(slots_end, format!("{computed:#x}"), format!("{stored:#x}"));
        }
        let slots = bytes[HEADER_BYTES..slots_end].to_vec();
        let len = slots.len() / shape.slot_bytes();
        Ok((Self { shape, prefix_bits, slots, len }, end))
    }
}
