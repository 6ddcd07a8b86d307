//! The items of a block, copied out of the arena and decompressed: all of them, or one chunk.

use std::cell::Cell;
use std::ops::Range;

use super::block::{Block, Head, Record};
use super::chunk::Chunk;
use super::codec::{Compression, Decoder};

/// See the module. Its buffers are used again.
#[derive(Debug, Default)]
pub(super) struct Contents {
    head: Head,
    payload: Vec<u8>,
    decoder: Decoder,
    /// The items of the chunks that were decompressed; what is behind `raw_len` is of no meaning.
    raw: Vec<u8>,
    raw_len: usize,
    /// Their numbers.
    decompressed: Range<usize>,
}

thread_local! {
    static KEPT: Cell<Option<Box<Contents>>> = const { Cell::new(None) };
}

/// Calls `work` with contents that belong to the thread. `work` may read another cache, or the same again.
pub(super) fn with_contents<T>(work: impl FnOnce(&mut Contents) -> T) -> T {
    let mut contents = KEPT.take().unwrap_or_default();
    let outcome = work(&mut contents);
    KEPT.set(Some(contents));
    outcome
}

impl Contents {
    /// Copies a block. Beside a writer the copy counts only after the block's version was validated.
    pub fn copy(&mut self, block: &Block<'_>, compression: &Compression) {
        self.head = block.head;
        self.decompressed = 0..0;
        block.copy_payload(&mut self.payload);
        self.decoder.take(compression, block.head.dictionaries);
    }

    fn before_tail(&self) -> usize {
        (self.head.items - self.head.tail) as usize
    }

    /// Bytes of the tail, which is the beginning of the payload.
    pub fn tail_bytes(&self) -> Option<usize> {
        let mut rest = &self.payload[..];
        for _ in 0..self.head.tail {
            Record::read(&mut rest)?;
        }
        Some(self.payload.len() - rest.len())
    }

    /// What follows the fingerprints.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Decompresses all chunks, to at most `bytes_max` bytes each; `None` if the bytes are not sound.
    pub fn decompress(&mut self, bytes_max: usize) -> Option<()> {
        self.decompress_chunks(0..self.before_tail(), bytes_max)
    }

    /// Decompresses the chunks of these items, which are no items of the tail.
    fn decompress_chunks(&mut self, items: Range<usize>, bytes_max: usize) -> Option<()> {
        if self.decompressed.start <= items.start && items.end <= self.decompressed.end {
            return Some(());
        }
        (self.raw_len, self.decompressed) = (0, 0..0);
        let mut decompressed = items.start..items.start;
        let mut rest = &self.payload[self.tail_bytes()?..];
        let mut first = 0;
        while first < items.end {
            let chunk = Chunk::read(&mut rest)?;
            let end = first + chunk.items;
            if end > items.start {
                if decompressed.is_empty() {
                    decompressed.start = first;
                }
                self.raw_len = self.decoder.decode(chunk, bytes_max, &mut self.raw, self.raw_len)?;
                decompressed.end = end;
            }
            first = end;
        }
        self.decompressed = decompressed;
        Some(())
    }

    /// An item; `None` if the bytes are not sound. The chunk of an item before the tail must have been decompressed.
    pub fn item(&self, number: usize) -> Option<Record<'_>> {
        let (mut rest, skipped) = match number.checked_sub(self.before_tail()) {
            Some(in_tail) => (&self.payload[..], in_tail),
            None => (&self.raw[..self.raw_len], number.checked_sub(self.decompressed.start)?),
        };
        for _ in 0..skipped {
            Record::read(&mut rest)?;
        }
        Record::read(&mut rest)
    }

    /// The item among `candidates`, one bit each, that has this key; `None` if there is none.
    pub fn find(&mut self, mut candidates: u32, key: &[u8], bytes_max: usize) -> Option<usize> {
        while candidates != 0 {
            let number = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            if number < self.before_tail() {
                self.decompress_chunks(number..number + 1, bytes_max)?;
            }
            if self.item(number).is_some_and(|item| item.key == key) {
                return Some(number);
            }
        }
        None
    }

    /// All items in order, which must have been decompressed. Ends early if the bytes are not sound.
    pub fn items(&self) -> impl Iterator<Item = Record<'_>> {
        let before_tail = self.before_tail();
        let (mut raw, mut tail) = (&self.raw[..self.raw_len], &self.payload[..]);
        (0..self.head.items as usize)
            .map_while(move |number| Record::read(if number < before_tail { &mut raw } else { &mut tail }))
    }
}
