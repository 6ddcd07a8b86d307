//! The items of a block, copied out of the arena and decompressed.

use std::cell::Cell;

use super::block::{Block, Head, Record};
use super::codec;

/// See the module. Its buffers are used again.
#[derive(Debug, Default)]
pub(super) struct Contents {
    head: Head,
    payload: Vec<u8>,
    /// The items that were compressed, if [`decompress`](Self::decompress) was called.
    raw: Vec<u8>,
    is_decompressed: bool,
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
    pub fn copy(&mut self, block: &Block<'_>) {
        self.head = block.head;
        self.is_decompressed = false;
        block.copy_payload(&mut self.payload);
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

    /// Decompresses at most `bytes_max` bytes, unless that was done; `None` if the bytes are not sound.
    pub fn decompress(&mut self, bytes_max: usize) -> Option<()> {
        if !self.is_decompressed {
            let compressed = &self.payload[self.tail_bytes()?..];
            codec::decode(self.head.codec, compressed, bytes_max, &mut self.raw)?;
            self.is_decompressed = true;
        }
        Some(())
    }

    /// An item; `None` if the bytes are not sound. Items before the tail must have been decompressed.
    pub fn item(&self, number: usize) -> Option<Record<'_>> {
        let before_tail = (self.head.items - self.head.tail) as usize;
        let (mut rest, skipped) = match number.checked_sub(before_tail) {
            Some(in_tail) => (&self.payload[..], in_tail),
            None => (&self.raw[..], number),
        };
        for _ in 0..skipped {
            Record::read(&mut rest)?;
        }
        Record::read(&mut rest)
    }

    /// The item among `candidates`, one bit each, that has this key; `None` if there is none.
    pub fn find(&mut self, mut candidates: u32, key: &[u8], bytes_max: usize) -> Option<usize> {
        let before_tail = self.head.items - self.head.tail;
        while candidates != 0 {
            let number = candidates.trailing_zeros();
            candidates &= candidates - 1;
            if number < before_tail {
                self.decompress(bytes_max)?;
            }
            if self.item(number as usize).is_some_and(|item| item.key == key) {
                return Some(number as usize);
            }
        }
        None
    }

    /// All items in order, which must have been decompressed. Ends early if the bytes are not sound.
    pub fn items(&self) -> impl Iterator<Item = Record<'_>> {
        let before_tail = (self.head.items - self.head.tail) as usize;
        let (mut raw, mut tail) = (&self.raw[..], &self.payload[..]);
        (0..self.head.items as usize)
            .map_while(move |number| Record::read(if number < before_tail { &mut raw } else { &mut tail }))
    }
}
