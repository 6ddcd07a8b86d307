//! Requests from bytes, resumable at any byte.
//!
//! ```text
//! request  = line                                 most requests
//!          | line value CR LF                     storage commands; the line says how long the value is
//! line     = words [CR] LF                        words parted by spaces
//! ```
//!
//! The parser keeps how far it has searched for the line's end, and then how long the request is, so that bytes are
//! looked at once, however they arrive; a storage line is understood twice, when it is whole and when its value is.

use super::line::{Block, Line};
use super::words::position_of;
use super::{Error, Limits, Refusal, Request};

/// Maximum number of spaces in front of a line of keys that is longer than other lines may be.
const SPACES_MAX: usize = 100;

/// What [`Parser::parse`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A whole request: the first `consumed` bytes, which it borrows.
    Complete {
        /// Bytes of the request.
        consumed: usize,
        /// The request.
        request: Request<'a>,
    },
    /// A request that is answered with an error line: the first `consumed` bytes. If its value is to be skipped, the
    /// next calls do that.
    Refused {
        /// Bytes of the request, without those of a value that is still to be skipped.
        consumed: usize,
        /// How to answer. If its error closes the connection, the parser must not be used again.
        refusal: Refusal<'a>,
    },
    /// Bytes of a value that was refused before, for which there is nothing to answer. At least one.
    Skipped {
        /// Bytes to discard.
        consumed: usize,
    },
    /// The request is not whole; call again with the same bytes and more after them.
    Incomplete {
        /// Minimum number of bytes that must follow.
        missing_bytes_min: usize,
    },
}

/// Parses the requests of one connection, one after the other.
///
/// Memory: none but these fields. The caller keeps the bytes of the request that is not whole, of which there are at
/// most [`Parser::request_bytes_max`].
#[derive(Debug)]
pub struct Parser {
    limits: Limits,
    /// Bytes of the current line already searched for its end.
    searched: usize,
    /// Length of a storage request whose line was understood; 0 while that is unknown.
    request_bytes: usize,
    /// Bytes of refused values still to come.
    skip_bytes: u64,
}

impl Parser {
    /// A parser at the start of a request.
    pub fn new(limits: Limits) -> Self {
        // What a line asks for must show in the shortest line that is too long.
        let line_bytes_max = limits.line_bytes_max.max(SPACES_MAX + b"gats ".len());
        Self { limits: Limits { line_bytes_max, ..limits }, searched: 0, request_bytes: 0, skip_bytes: 0 }
    }

    /// Maximum number of bytes that can be needed in one piece.
    pub fn request_bytes_max(&self) -> usize {
        let Limits { value_bytes_max, line_bytes_max, keys_line_bytes_max } = self.limits;
        let storage = line_bytes_max.saturating_add(value_bytes_max).saturating_add(3);
        storage.max(keys_line_bytes_max.saturating_add(1))
    }

    /// Parses one request from the front of `bytes`.
    ///
    /// After [`Progress::Incomplete`], `bytes` must start with the bytes of the call before; after anything else, with
    /// the byte after those consumed.
    #[inline]
    pub fn parse<'a>(&mut self, bytes: &'a [u8]) -> Progress<'a> {
        if self.skip_bytes > 0 {
            return self.skip(bytes);
        }
        if bytes.len() < self.request_bytes {
            return Progress::Incomplete { missing_bytes_min: self.request_bytes - bytes.len() };
        }
        let Some(found) = position_of::<b'\n'>(&bytes[self.searched.min(bytes.len())..]) else {
            return self.unfinished_line(bytes);
        };
        let end = self.searched + found;
        if end > self.limits.line_bytes_max && !self.may_be_long(&bytes[..end]) {
            return Progress::Refused { consumed: end + 1, refusal: Refusal::new(Error::LineTooLong) };
        }
        let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
        match Line::parse(line) {
            Ok(Line::Request(request)) => {
                self.searched = 0;
                Progress::Complete { consumed: end + 1, request }
            }
            Ok(Line::Block(block)) => self.block(block, bytes, end + 1),
            Ok(Line::Skip { refusal, bytes: skip_bytes }) => {
                self.searched = 0;
                self.skip_bytes = skip_bytes;
                Progress::Refused { consumed: end + 1, refusal }
            }
            Err(refusal) => {
                self.searched = 0;
                Progress::Refused { consumed: end + 1, refusal }
            }
        }
    }

    /// A storage request whose value starts at `start`.
    #[inline]
    fn block<'a>(&mut self, block: Block<'a>, bytes: &'a [u8], start: usize) -> Progress<'a> {
        if block.bytes > self.limits.value_bytes_max {
            self.searched = 0;
            self.skip_bytes = block.bytes as u64 + 2;
            return Progress::Refused { consumed: start, refusal: block.too_large() };
        }
        let end = start + block.bytes;
        let consumed = end + 2;
        if bytes.len() < consumed {
            self.searched = start - 1;
            self.request_bytes = consumed;
            return Progress::Incomplete { missing_bytes_min: consumed - bytes.len() };
        }
        self.searched = 0;
        self.request_bytes = 0;
        if &bytes[end..consumed] == b"\r\n" {
            Progress::Complete { consumed, request: block.with_value(&bytes[start..end]) }
        } else {
            Progress::Refused { consumed, refusal: block.bad_chunk() }
        }
    }

    #[cold]
    fn skip<'a>(&mut self, bytes: &'a [u8]) -> Progress<'a> {
        let consumed = usize::try_from(self.skip_bytes).unwrap_or(usize::MAX).min(bytes.len());
        if consumed == 0 {
            return Progress::Incomplete { missing_bytes_min: 1 };
        }
        self.skip_bytes -= consumed as u64;
        Progress::Skipped { consumed }
    }

    fn unfinished_line<'a>(&mut self, bytes: &'a [u8]) -> Progress<'a> {
        self.searched = bytes.len();
        if bytes.len() > self.limits.line_bytes_max && !self.may_be_long(bytes) {
            return Progress::Refused { consumed: bytes.len(), refusal: Refusal::new(Error::LineTooLong) };
        }
        Progress::Incomplete { missing_bytes_min: 1 }
    }

    /// Whether `line`, which is longer than other lines may be, asks for many keys and is not longer than such lines
    /// may be.
    #[cold]
    fn may_be_long(&self, line: &[u8]) -> bool {
        let spaces = line.iter().take_while(|byte| **byte == b' ').take(SPACES_MAX + 1).count();
        let is_list = [&b"get "[..], b"gets ", b"gat ", b"gats "]
            .iter()
            .any(|command| line[spaces..].starts_with(command));
        is_list && spaces <= SPACES_MAX && line.len() <= self.limits.keys_line_bytes_max
    }
}
