//! Reading and writing the words of stored index structures, with a checksum at the end.
//!
//! A stored structure is a whole number of little-endian 64-bit words: its kind, its fields, and as the last word the
//! XXH3-64 (seed: the kind) of everything before it.

use alluvium_base::Corruption;
use alluvium_base::checksum::checksum64;

const WORD_BYTES: usize = size_of::<u64>();

/// Collects the words of a structure.
pub(crate) struct WireWriter {
    kind: u64,
    bytes: Vec<u8>,
}

impl WireWriter {
    /// Starts a structure of `kind` that will hold about `words` words.
    pub(crate) fn new(kind: u64, words: usize) -> Self {
        let mut writer = Self { kind, bytes: Vec::with_capacity((words + 2) * WORD_BYTES) };
        writer.word(kind);
        writer
    }

    /// Appends one word.
    pub(crate) fn word(&mut self, word: u64) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }

    /// Appends words. The reader must know their number from fields before them.
    pub(crate) fn words(&mut self, words: &[u64]) {
        for &word in words {
            self.word(word);
        }
    }

    /// Appends a nested structure, preceded by its length in bytes.
    pub(crate) fn nested(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// The bytes, with the checksum at their end.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let checksum = checksum64(&self.bytes, self.kind);
        self.word(checksum);
        self.bytes
    }
}

/// Reads the words of a structure whose kind and checksum were verified.
pub(crate) struct WireReader<'bytes> {
    name: &'static str,
    bytes: &'bytes [u8],
    offset: usize,
}

impl<'bytes> WireReader<'bytes> {
    /// Checks kind and checksum of `bytes`. `name` names the structure in errors.
    pub(crate) fn new(name: &'static str, kind: u64, bytes: &'bytes [u8]) -> Result<Self, Corruption> {
        let Some(body_bytes) = bytes.len().checked_sub(WORD_BYTES).filter(|body| *body >= WORD_BYTES) else {
            return Err(Corruption::new(name, 0, "at least 16 bytes", format!("{} bytes", bytes.len())));
        };
        let (body, stored) = bytes.split_at(body_bytes);
        let mut reader = Self { name, bytes: body, offset: 0 };
        let found = reader.word()?;
        if found != kind {
            return Err(Corruption::new(name, 0, format!("kind {kind:#018x}"), format!("{found:#018x}")));
        }
        let computed = checksum64(body, kind);
        if stored != computed.to_le_bytes() {
            return Err(Corruption::new(
                name,
                body_bytes as u64,
                format!("checksum {computed:#018x}"),
                format!("bytes {stored:02x?}"),
            ));
        }
        Ok(reader)
    }

    /// The next word.
    pub(crate) fn word(&mut self) -> Result<u64, Corruption> {
        let word = self.bytes.get(self.offset..).and_then(|rest| rest.first_chunk::<WORD_BYTES>());
        let Some(word) = word else {
            return Err(self.corruption("another word", "the end"));
        };
        self.offset += WORD_BYTES;
        Ok(u64::from_le_bytes(*word))
    }

    /// The next word, which must be at most `most`. `what` names it in errors.
    pub(crate) fn word_up_to(&mut self, most: u64, what: &str) -> Result<u64, Corruption> {
        let word = self.word()?;
        if word > most {
            self.offset -= WORD_BYTES;
            return Err(self.corruption(format!("{what} of at most {most}"), word.to_string()));
        }
        Ok(word)
    }

    /// The next `count` words. If there are fewer, fails before it allocates.
    pub(crate) fn words(&mut self, count: usize) -> Result<Vec<u64>, Corruption> {
        let bytes = count
            .checked_mul(WORD_BYTES)
            .and_then(|length| self.bytes.get(self.offset..)?.get(..length))
            .ok_or_else(|| self.corruption(format!("{count} words"), "the end"))?;
        self.offset += bytes.len();
        let (chunks, _) = bytes.as_chunks::<WORD_BYTES>();
        Ok(chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect())
    }

    /// The bytes of a nested structure, and their offset in this one.
    pub(crate) fn nested(&mut self) -> Result<(&'bytes [u8], u64), Corruption> {
        let length = self.word()?;
        let bytes = usize::try_from(length)
            .ok()
            .and_then(|length| self.bytes.get(self.offset..)?.get(..length))
            .ok_or_else(|| self.corruption(format!("{length} bytes"), "the end"))?;
        let offset = self.offset as u64;
        self.offset += bytes.len();
        Ok((bytes, offset))
    }

    /// Checks that everything was read.
    pub(crate) fn finish(self) -> Result<(), Corruption> {
        let left = self.bytes.len() - self.offset;
        if left != 0 {
            return Err(self.corruption("the end", format!("{left} more bytes")));
        }
        Ok(())
    }

    /// A corruption at the current offset.
    pub(crate) fn corruption(&self, expected: impl Into<String>, found: impl Into<String>) -> Corruption {
        Corruption::new(self.name, self.offset as u64, expected, found)
    }
}
