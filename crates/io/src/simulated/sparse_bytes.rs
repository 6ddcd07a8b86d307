//! A byte vector with holes, like a file.

use std::collections::BTreeMap;
use std::ops::Range;

/// The unit of allocation, as on most file systems.
pub(super) const BLOCK_BYTES: u64 = 4096;

const BLOCK_LEN: usize = BLOCK_BYTES as usize;

/// The content of a file: blocks that were never written (or were punched out) are absent and read as zeros.
///
/// Invariant: no block starts at or beyond `len`, and bytes of the last block beyond `len` are zero.
#[derive(Clone, Debug, Default)]
pub(super) struct SparseBytes {
    len: u64,
    blocks: BTreeMap<u64, Box<[u8; BLOCK_LEN]>>,
}

/// The parts of `range` by block: block number, range within the block, range within the whole.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let position = offset + done as u64;
        let start = (position % BLOCK_BYTES) as usize;
        let step = (BLOCK_LEN - start).min(len - done);
        let part = (position / BLOCK_BYTES, start..start + step, done..done + step);
        done += step;
        Some(part)
    })
}

impl SparseBytes {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of the blocks that exist.
    pub(super) fn allocated_bytes(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK_BYTES
    }

    /// Bytes of the blocks that a write of `len` bytes at `offset` would add.
    pub(super) fn missing_bytes(&self, offset: u64, len: usize) -> u64 {
        parts(offset, len).filter(|(block, ..)| !self.blocks.contains_key(block)).count() as u64 * BLOCK_BYTES
    }

    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> usize {
        let got = self.len.saturating_sub(offset).min(buffer.len() as u64) as usize;
        for (block, within, whole) in parts(offset, got) {
            match self.blocks.get(&block) {
                Some(bytes) => buffer[whole].copy_from_slice(&bytes[within]),
                None => buffer[whole].fill(0),
            }
        }
        got
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        if bytes.is_empty() {
            return;
        }
        self.len = self.len.max(offset + bytes.len() as u64);
        for (block, within, whole) in parts(offset, bytes.len()) {
            self.blocks.entry(block).or_insert_with(|| Box::new([0; BLOCK_LEN]))[within]
                .copy_from_slice(&bytes[whole]);
        }
    }

    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.blocks.split_off(&len.div_ceil(BLOCK_BYTES));
            if let Some(last) = self.blocks.get_mut(&(len / BLOCK_BYTES)) {
                last[(len % BLOCK_BYTES) as usize..].fill(0);
            }
        }
        self.len = len;
    }

    /// Zeros a range within the length and frees the blocks that are entirely in it.
    pub(super) fn punch(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len).min(self.len);
        let touched = offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES);
        if touched.is_empty() || offset >= end {
            return;
        }
        self.blocks.retain(|&block, bytes| {
            let start = block * BLOCK_BYTES;
            let (from, to) = (offset.max(start), end.min(start + BLOCK_BYTES));
            if from >= to {
                return true;
            }
            bytes[(from - start) as usize..(to - start) as usize].fill(0);
            from > start || to < start + BLOCK_BYTES
        });
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len as usize];
        self.read(&mut bytes, 0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_vector(
            steps in prop::collection::vec((0u8..4, 0usize..20_000, 0usize..9000, 1u8..), 0..30),
        ) {
            let mut sparse = SparseBytes::default();
            let mut model: Vec<u8> = Vec::new();
            for (kind, offset, len, byte) in steps {
                match kind {
                    0 => {
                        sparse.set_len(offset as u64);
                        model.resize(offset, 0);
                    }
                    1 => {
                        sparse.punch(offset as u64, len as u64);
                        let end = (offset + len).min(model.len());
                        model[offset.min(end)..end].fill(0);
                    }
                    _ => {
                        sparse.write(&vec![byte; len], offset as u64);
                        if len > 0 {
                            model.resize(model.len().max(offset + len), 0);
                            model[offset..offset + len].fill(byte);
                        }
                    }
                }
                prop_assert_eq!(&sparse.to_vec(), &model);
                prop_assert!(sparse.allocated_bytes() <= (model.len() as u64).next_multiple_of(BLOCK_BYTES));
            }
        }
    }
}
