//! [`Reader`]: lengths and strings of a dump.

/// First bytes of lengths and of strings that are not just a length and bytes.
pub(super) const LENGTH_32: u8 = 0x80;
pub(super) const LENGTH_64: u8 = 0x81;
pub(super) const INTEGER_8: u8 = 0xc0;
pub(super) const INTEGER_16: u8 = 0xc1;
pub(super) const INTEGER_32: u8 = 0xc2;
const COMPRESSED: u8 = 0xc3;

/// The bytes that are left. Its methods return `None` if these do not suffice or are wrong.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    /// Maximum number of bytes that all strings to come may have.
    budget: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], budget: usize) -> Self {
        Self { bytes, budget }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn array<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        let (taken, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*taken)
    }

    pub(super) fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    pub(super) fn length(&mut self) -> Option<usize> {
        let first = self.byte()?;
        self.length_from(first)
    }

    fn length_from(&mut self, first: u8) -> Option<usize> {
        let length = match first {
            ..0x40 => first.into(),
            0x40..0x80 => u64::from(first & 0x3f) << 8 | u64::from(self.byte()?),
            LENGTH_32 => u32::from_be_bytes(self.array()?).into(),
            LENGTH_64 => u64::from_be_bytes(self.array()?),
            _ => return None,
        };
        usize::try_from(length).ok()
    }

    /// Takes the bytes of a string from the budget.
    pub(super) fn spend(&mut self, length: usize) -> Option<usize> {
        self.budget = self.budget.checked_sub(length)?;
        Some(length)
    }

    pub(super) fn string(&mut self) -> Option<Vec<u8>> {
        let number = match self.byte()? {
            INTEGER_8 => i64::from(i8::from_le_bytes(self.array()?)),
            INTEGER_16 => i16::from_le_bytes(self.array()?).into(),
            INTEGER_32 => i32::from_le_bytes(self.array()?).into(),
            COMPRESSED => {
                let compressed = self.length()?;
                let length = self.length()?;
                let length = self.spend(length)?;
                return decompress(self.bytes(compressed)?, length);
            }
            first => {
                let length = self.length_from(first)?;
                let length = self.spend(length)?;
                return self.bytes(length).map(<[u8]>::to_vec);
            }
        };
        let text = number.to_string().into_bytes();
        self.spend(text.len())?;
        Some(text)
    }
}

/// Decompresses LZF: control bytes below 32 precede that many literal bytes and one; others give a length in their
/// first three bits and a distance in their last five and the next byte, and the bytes from there on are copied.
fn decompress(compressed: &[u8], length: usize) -> Option<Vec<u8>> {
    // The length is announced, not yet proven: a byte of input gives at most 264 of output in three.
    let mut out = Vec::with_capacity(length.min(compressed.len().saturating_mul(88)));
    let mut reader = Reader::new(compressed, 0);
    while let Some(control) = reader.byte() {
        if control < 32 {
            out.extend_from_slice(reader.bytes(usize::from(control) + 1)?);
        } else {
            let mut copied = usize::from(control >> 5) + 2;
            if copied == 9 {
                copied += usize::from(reader.byte()?);
            }
            let distance = (usize::from(control & 31) << 8 | usize::from(reader.byte()?)) + 1;
            let start = out.len().checked_sub(distance)?;
            // Byte by byte: the bytes copied may be among those to copy.
            (start..start + copied).for_each(|at| out.push(out[at]));
        }
        if out.len() > length {
            return None;
        }
    }
    (out.len() == length).then_some(out)
}
