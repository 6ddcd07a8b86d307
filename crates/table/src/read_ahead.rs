//! [`ReadAhead`]: reads pages of sections into memory while earlier ones are in use.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use alluvium_base::Corruption;
use alluvium_io::{AlignedBuffer, Completed, Operation, Pipeline, ReadRequest, Storage};

use crate::error::{Error, Result};
use crate::page::PAGE_BYTES;
use crate::section::Section;

/// Pieces in flight besides the one in use: enough that the device is never idle while the caller computes.
pub(super) const PIECES_AHEAD: usize = 4;
/// Buffers of a scanner with read-ahead: those in flight and the one in use.
pub const READS_AHEAD_MAX: usize = PIECES_AHEAD + 1;

/// A contiguous part of the pages of a section.
#[derive(Clone, Debug)]
pub(super) struct Extent {
    pub section: Arc<Section>,
    pub pages: Range<u32>,
}

/// Pages in memory: those of `extent`, a part of the `number`-th requested extent.
#[derive(Debug)]
pub(super) struct Piece {
    pub number: usize,
    pub extent: Extent,
    pub buffer: AlignedBuffer,
}

impl Piece {
    fn offset(&self) -> u64 {
        self.extent.section.page_offset(self.extent.pages.start)
    }

    /// The read that fills the piece.
    fn request(&mut self) -> ReadRequest<'_> {
        let offset = self.offset();
        ReadRequest { file: &**self.extent.section.file(), offset, buffer: &mut self.buffer, result: Ok(0) }
    }

    /// Returns the piece if a read has filled it.
    fn filled(self, outcome: std::io::Result<usize>) -> Result<Self> {
        let file = self.extent.section.file();
        let read = outcome.map_err(Error::io("read", file.name()))?;
        if read < self.buffer.len() {
            let expected = format!("{} bytes", self.buffer.len());
            let found = format!("{read}, then the end");
            return Err(Corruption::new(file.name(), self.offset(), expected, found).into());
        }
        Ok(self)
    }
}

/// Reads extents one after the other, in pieces of a fixed number of pages, each within one extent.
///
/// With a pipeline up to four pieces are read ahead, with the memory of five pieces; without one each piece is read
/// when it is requested.
pub(super) struct ReadAhead {
    pipeline: Option<Box<dyn Pipeline>>,
    piece_pages: u32,
    /// The extents that are not yet submitted, with their numbers.
    unread: VecDeque<(usize, Extent)>,
    /// The submitted reads in order; token `first_token + i` is the read of `ahead[i]`.
    ahead: VecDeque<(usize, Extent, Option<Completed>)>,
    first_token: u64,
    spare: Vec<AlignedBuffer>,
    /// The first piece, if it was read before it was requested.
    first: Option<Piece>,
}

impl ReadAhead {
    /// Reads `extents` when they are requested.
    pub fn without(extents: impl IntoIterator<Item = Extent>, read_bytes: usize) -> Self {
        Self {
            pipeline: None,
            piece_pages: (read_bytes / PAGE_BYTES).max(1) as u32,
            unread: extents.into_iter().enumerate().collect(),
            ahead: VecDeque::new(),
            first_token: 0,
            spare: Vec::new(),
            first: None,
        }
    }

    /// Reads `extents`, files of `storage`, ahead of their use. Starts immediately.
    pub fn start(
        storage: &dyn Storage,
        extents: impl IntoIterator<Item = Extent>,
        read_bytes: usize,
    ) -> Self {
        let mut reads = Self::without(extents, read_bytes);
        let pages: usize = reads.unread.iter().map(|(_, extent)| extent.pages.len()).sum();
        if pages <= reads.piece_pages as usize {
            // A read of one operation or a few short ones is not worth a pipeline.
            return reads;
        }
        reads.pipeline = Some(storage.pipeline(PIECES_AHEAD));
        reads.submit();
        reads
    }

    /// Reads together the first pieces of those readers that have no reads in flight: otherwise they would be requested
    /// one after the other, and each would wait for the device. Takes pieces from memory if they are kept there, and
    /// keeps those read if there is room.
    ///
    /// # Errors
    /// Those of [`ReadAhead::next`]; the pieces read in this call are lost then.
    pub fn begin_together<'r>(
        storage: &dyn Storage,
        readers: impl IntoIterator<Item = &'r mut ReadAhead>,
    ) -> Result<()> {
        let begin = |reads: &'r mut ReadAhead| {
            let idle = reads.pipeline.is_none() && reads.first.is_none();
            let (number, extent) = idle.then(|| reads.next_extent()).flatten()?;
            let mut buffer = reads.spare.pop().unwrap_or_default();
            buffer.resize_unspecified(extent.pages.len() * PAGE_BYTES);
            let is_kept = extent.section.copy_kept(extent.pages.start, &mut buffer);
            let piece = Piece { number, extent, buffer };
            if is_kept {
                reads.first = Some(piece);
                return None;
            }
            Some((&mut reads.first, piece))
        };
        let mut firsts: Vec<_> = readers.into_iter().filter_map(begin).collect();
        let mut requests: Vec<ReadRequest<'_>> =
            firsts.iter_mut().map(|(_, piece)| piece.request()).collect();
        storage.read_batch(&mut requests);
        let outcomes: Vec<_> = requests.into_iter().map(|request| request.result).collect();
        for ((first, piece), outcome) in firsts.into_iter().zip(outcomes) {
            let piece = piece.filled(outcome)?;
            piece.extent.section.keep_pages(piece.extent.pages.start, &piece.buffer);
            *first = Some(piece);
        }
        Ok(())
    }

    /// The next piece, or `None` after the last. `used` is the buffer of an earlier one, to be filled again.
    ///
    /// # Errors
    /// Those of reading, and a corruption if the file ends early. After an error the caller must not call this again.
    pub fn next(&mut self, used: AlignedBuffer) -> Result<Option<Piece>> {
        self.spare.push(used);
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        if self.pipeline.is_none() {
            let Some((number, extent)) = self.next_extent() else { return Ok(None) };
            let mut buffer = self.spare.pop().unwrap_or_default();
            extent.section.read_pages(extent.pages.start, extent.pages.len(), &mut buffer)?;
            return Ok(Some(Piece { number, extent, buffer }));
        }
        self.submit();
        let Some(completed) = self.wait_for_first() else { return Ok(None) };
        let (number, extent, _) = self.ahead.pop_front().expect("its read has completed");
        self.first_token += 1;
        Piece { number, extent, buffer: completed.buffer }.filled(completed.result).map(Some)
    }

    /// Drops everything that is not read yet.
    pub fn stop(&mut self) {
        self.first = None;
        self.unread.clear();
        self.ahead.clear();
        self.pipeline = None;
    }

    /// Takes the next piece from what is unread.
    fn next_extent(&mut self) -> Option<(usize, Extent)> {
        loop {
            let (number, extent) = self.unread.front_mut()?;
            let end = extent.pages.end.min(extent.pages.start.saturating_add(self.piece_pages));
            let pages = extent.pages.start..end;
            extent.pages.start = end;
            let piece = (*number, Extent { section: Arc::clone(&extent.section), pages: pages.clone() });
            if extent.pages.is_empty() {
                self.unread.pop_front();
            }
            if !pages.is_empty() {
                return Some(piece);
            }
        }
    }

    /// Starts as many reads as may be in flight.
    fn submit(&mut self) {
        while self.pipeline.is_some() && self.ahead.len() < PIECES_AHEAD {
            let Some((number, extent)) = self.next_extent() else { return };
            let mut buffer = self.spare.pop().unwrap_or_default();
            buffer.resize_unspecified(extent.pages.len() * PAGE_BYTES);
            let token = self.first_token + self.ahead.len() as u64;
            let offset = extent.section.page_offset(extent.pages.start);
            if let Some(pipeline) = &mut self.pipeline {
                pipeline.submit(Operation::Read, &**extent.section.file(), offset, buffer, token);
            }
            self.ahead.push_back((number, extent, None));
        }
    }

    /// Waits until the first piece ahead is read. Returns `None` if there is none.
    fn wait_for_first(&mut self) -> Option<Completed> {
        loop {
            let (_, _, completed) = self.ahead.front_mut()?;
            if let Some(completed) = completed.take() {
                return Some(completed);
            }
            let completed = self.pipeline.as_mut()?.wait()?;
            let place = (completed.token - self.first_token) as usize;
            self.ahead[place].2 = Some(completed);
        }
    }
}

impl fmt::Debug for ReadAhead {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ReadAhead")
            .field("unread", &self.unread.len())
            .field("ahead", &self.ahead.len())
            .finish_non_exhaustive()
    }
}
