//! Reads the content of one record with several reads in flight.

use std::collections::VecDeque;
use std::ops::Range;

use alluvium_io::{AlignedBuffer, Operation};

use super::frame::CHUNK_BYTES;
use super::reader::{KeyAndValue, RecordReader};
use crate::error::Result;

/// Chunks of one read: with fewer, a device does not reach its sequential rate; with more, checking and copying the
/// first read waits longer.
const PIECE_CHUNKS: u64 = 4;

/// A read of consecutive chunks.
struct Piece {
    /// Offset behind the last chunk.
    end: u64,
    /// Positions of the chunks in the buffer.
    chunks: Range<usize>,
    /// The outcome: the buffer, or `None` if the read failed or was cut short.
    read: Option<Option<AlignedBuffer>>,
}

impl RecordReader {
    /// Whether the rest of the record is long enough for reading ahead.
    pub(super) fn is_worth_reading_ahead(&self) -> bool {
        self.chunks >= 2 * PIECE_CHUNKS && self.end - self.position > PIECE_CHUNKS * CHUNK_BYTES as u64
    }

    /// Appends the content to `content` while further reads are in flight, as many as there is room for in the chunks
    /// of this reader. Stops before chunks that cannot be read this way: a part is still in memory, or the read failed.
    pub(super) fn read_ahead(&mut self, content: &mut KeyAndValue) -> Result<()> {
        let file = self.file.clone();
        let depth = (self.chunks / PIECE_CHUNKS) as usize;
        let mut pipeline = file.pipeline(depth);
        let mut pieces: VecDeque<Piece> = VecDeque::with_capacity(depth);
        let mut spare: Vec<AlignedBuffer> = Vec::new();
        let (mut next, mut taken) = (self.position, 0);
        loop {
            while pieces.len() < depth && next < self.end {
                let end = self.end.min(next + PIECE_CHUNKS * CHUNK_BYTES as u64);
                let Some(span) = file.span(next, end) else { break };
                let mut buffer = spare.pop().unwrap_or_default();
                buffer.resize_unspecified(span.len);
                let token = taken + pieces.len() as u64;
                pipeline.submit(Operation::Read, span.file, span.offset, buffer, token);
                pieces.push_back(Piece { end, chunks: span.wanted(), read: None });
                next = end;
            }
            let Some(first) = pieces.front_mut() else { return Ok(()) };
            let Some(read) = first.read.take() else {
                let done = pipeline.wait().expect("it is in flight");
                let piece = &mut pieces[(done.token - taken) as usize];
                let is_whole = done.result.is_ok_and(|read| read >= piece.chunks.end);
                piece.read = Some(is_whole.then_some(done.buffer));
                continue;
            };
            let Some(mut buffer) = read else { return Ok(()) };
            self.exchange(&mut buffer, first.chunks.clone(), first.end);
            while let Some(chunk) = self.next_read_chunk()? {
                content.push(chunk);
            }
            spare.push(buffer);
            pieces.pop_front();
            taken += 1;
        }
    }
}
