//! Reads large values, which may consist of several records and a tail in the item itself.

use std::io::{self, Read};

use super::large::check_key;
use super::read::View;
use crate::blob::{LargeValue, RecordReader, Reference};
use crate::error::Result;
use crate::item::Item;

impl View<'_> {
    /// The complete key and value of a large item. The first mebibytes of its records are in flight together.
    pub fn read_large(&self, large: &LargeValue<'_>) -> Result<(Vec<u8>, Vec<u8>)> {
        let (key, mut value) = self.read_pieces(&large.pieces, large.tail.len())?;
        value.extend_from_slice(large.tail);
        Ok((key, value))
    }

    /// The key and the content of the records of one value, with room for `more` bytes behind the content.
    pub fn read_pieces(&self, pieces: &[Reference], more: usize) -> Result<(Vec<u8>, Vec<u8>)> {
        if pieces.is_empty() {
            return Ok(Default::default());
        }
        let _room = self.piece_room(pieces);
        let readers = pieces.iter().map(|piece| self.record_of(*piece, u64::MAX));
        let mut readers = readers.collect::<Result<Vec<_>>>()?;
        if readers.len() > 1 {
            RecordReader::read_first_pieces(&*self.shared.storage, &mut readers);
        }
        let len: usize = pieces.iter().map(|piece| piece.value_len as usize).sum();
        let mut whole: Option<(Vec<u8>, Vec<u8>)> = None;
        for (reader, piece) in readers.into_iter().zip(pieces) {
            let (found, content) = reader.read_all()?;
            match &mut whole {
                None => {
                    let mut value = content;
                    value.reserve_exact(len + more - value.len());
                    whole = Some((found, value));
                }
                Some((key, value)) => {
                    check_key(piece, &found, key)?;
                    value.extend_from_slice(&content);
                }
            }
        }
        Ok(whole.unwrap_or_default())
    }

    /// The value of a large item of `key` as a stream with `chunks` chunks in memory at a time.
    pub fn piece_reader(&self, key: &[u8], item: &Item<'_>, chunks: u64) -> Result<PieceReader> {
        let large = LargeValue::required(item)?;
        let pieces = large.pieces.iter().map(|piece| Ok((self.record_of(*piece, chunks)?, *piece)));
        let mut reader = PieceReader {
            len: large.len(),
            key: key.to_vec(),
            current: None,
            rest: pieces.collect::<Result<Vec<_>>>()?.into_iter(),
            tail: io::Cursor::new(large.tail.to_vec()),
        };
        reader.next_piece()?;
        Ok(reader)
    }
}

/// The value of a large item as a stream.
#[derive(Debug)]
pub(super) struct PieceReader {
    len: u64,
    /// The item's key, which each record repeats.
    key: Vec<u8>,
    current: Option<RecordReader>,
    rest: std::vec::IntoIter<(RecordReader, Reference)>,
    tail: io::Cursor<Vec<u8>>,
}

impl PieceReader {
    pub fn len(&self) -> u64 {
        self.len
    }

    fn next_piece(&mut self) -> Result<()> {
        self.current = match self.rest.next() {
            None => None,
            Some((mut reader, piece)) => {
                check_key(&piece, &reader.read_key()?, &self.key)?;
                Some(reader)
            }
        };
        Ok(())
    }

    /// Fills the front of `out` with the next bytes; returns their number, which is 0 only at the end.
    pub fn fill(&mut self, out: &mut [u8]) -> Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        while let Some(reader) = &mut self.current {
            match reader.fill(out)? {
                0 => self.next_piece()?,
                read => return Ok(read),
            }
        }
        Ok(self.tail.read(out).expect("memory can be read"))
    }
}
