//! Requests from bytes, resumable at any byte.
//!
//! ```text
//! frame    = "*" count CRLF { "$" bytes CRLF data CRLF }      count arguments
//!          | line LF                                          inline: anything that does not start with "*"
//! ```
//!
//! The parser keeps what it has understood of an unfinished frame, so it looks at every byte once, however the frame
//! arrives. An error is reported at the first byte that no valid frame can have there; Redis waits for the end of the
//! line and reports the same text.

use crate::arguments::Span;
use crate::{Arguments, Limits, ProtocolError, inline, integer};

/// What [`Parser::parse`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A whole frame: the first `consumed` bytes. Its arguments are in [`Parser::arguments`]; the next call starts a
    /// new frame.
    Complete {
        /// Bytes of the frame.
        consumed: usize,
    },
    /// The frame is not whole; call again with the same bytes and more after them.
    Incomplete {
        /// Minimum number of bytes that must follow.
        missing_bytes_min: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// At the first byte of a frame.
    Start,
    /// Looking for the line feed of an inline request.
    Inline,
    /// At a `$`, with this many arguments to come, at least one.
    Length { remaining: usize },
    /// At the data of an argument; `remaining` counts it.
    Data { remaining: usize, bytes: usize },
    /// The last frame was whole.
    Done,
}

/// Parses the requests of one connection, frame after frame.
///
/// Memory: 8 bytes an argument received, and a copy of the current inline request. Not safe to use after an error:
/// the stream has no framing any more.
#[derive(Debug)]
pub struct Parser {
    limits: Limits,
    state: State,
    /// Bytes of the frame already understood; in an inline request, already searched.
    position: usize,
    spans: Vec<Span>,
    /// The unescaped words of an inline request; `spans` point here instead of into the frame when `is_inline`.
    words: Vec<u8>,
    is_inline: bool,
    is_trusted: bool,
}

impl Parser {
    /// A parser at the start of a frame.
    pub fn new(limits: Limits) -> Self {
        let frame_bytes_max = limits.frame_bytes_max.min(Limits::FRAME_BYTES_MAX);
        Self {
            limits: Limits {
                frame_bytes_max,
                inline_bytes_max: limits.inline_bytes_max.min(frame_bytes_max),
                ..limits
            },
            state: State::Start,
            position: 0,
            spans: Vec::new(),
            words: Vec::new(),
            is_inline: false,
            is_trusted: true,
        }
    }

    /// Says whether the peer is trusted, for arguments that begin from now on. At first it is; one that has not
    /// authenticated may send only small frames.
    #[inline]
    pub fn set_trusted(&mut self, is_trusted: bool) {
        self.is_trusted = is_trusted;
    }

    /// Parses one frame from the front of `frame`.
    ///
    /// After [`Progress::Incomplete`], `frame` must start with the bytes of the call before; after
    /// [`Progress::Complete`], with the byte after those consumed.
    #[inline]
    pub fn parse(&mut self, frame: &[u8]) -> Result<Progress, ProtocolError> {
        if self.state == State::Done {
            self.restart();
        }
        loop {
            match self.state {
                State::Start => match frame.first() {
                    None => return Ok(Progress::Incomplete { missing_bytes_min: 1 }),
                    Some(b'*') => match self.length(frame, ProtocolError::InvalidMultibulkLength)? {
                        None => return Ok(Progress::Incomplete { missing_bytes_min: 1 }),
                        Some(count) if count <= 0 => return Ok(self.complete()),
                        Some(count) => self.state = State::Length { remaining: self.argument_count(count)? },
                    },
                    Some(_) => self.state = State::Inline,
                },
                State::Inline => return self.inline(frame),
                State::Length { remaining } => {
                    match frame.get(self.position) {
                        None => return Ok(Progress::Incomplete { missing_bytes_min: 6 * remaining }),
                        Some(b'$') => {}
                        Some(other) => return Err(ProtocolError::ExpectedBulk(*other)),
                    }
                    let Some(bytes) = self.length(frame, ProtocolError::InvalidBulkLength)? else {
                        return Ok(Progress::Incomplete { missing_bytes_min: 1 });
                    };
                    self.state = State::Data { remaining, bytes: self.bulk_bytes(bytes)? };
                }
                State::Data { remaining, bytes } => {
                    let end = self.position + bytes;
                    match frame.get(end..end + 2) {
                        None => return Self::unfinished_data(frame, end),
                        Some(b"\r\n") => {}
                        Some(_) => return Err(ProtocolError::ExpectedLineEnd),
                    }
                    self.spans.push(Span::new(self.position, bytes));
                    self.position = end + 2;
                    if remaining == 1 {
                        return Ok(self.complete());
                    }
                    self.state = State::Length { remaining: remaining - 1 };
                }
                State::Done => unreachable!("restarted above"),
            }
        }
    }

    /// The arguments of the frame that was just completed; `frame` holds the bytes given to [`Parser::parse`].
    #[inline]
    pub fn arguments<'a>(&'a self, frame: &'a [u8]) -> Arguments<'a> {
        debug_assert_eq!(self.state, State::Done);
        Arguments::new(if self.is_inline { &self.words } else { frame }, &self.spans)
    }

    /// Frees memory that a large frame took; meant for the time between frames.
    pub fn shrink(&mut self) {
        if self.state == State::Done {
            self.restart();
        }
        self.spans.shrink_to(16);
        self.words.shrink_to(0);
    }

    /// Bytes of heap memory held.
    pub fn heap_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.words.capacity()
    }

    #[inline]
    fn restart(&mut self) {
        self.state = State::Start;
        self.position = 0;
        self.spans.clear();
        self.words.clear();
        self.is_inline = false;
    }

    #[inline]
    fn complete(&mut self) -> Progress {
        self.state = State::Done;
        Progress::Complete { consumed: self.position }
    }

    /// Reads the number of a `*` or `$` line at the current position and moves past the line. Returns `None` if the
    /// line is incomplete but may become a valid one.
    #[inline]
    fn length(&mut self, frame: &[u8], invalid: ProtocolError) -> Result<Option<i64>, ProtocolError> {
        let text = &frame[self.position + 1..];
        // One digit is the common case: counts and the lengths of names.
        if let [digit @ b'0'..=b'9', b'\r', b'\n', ..] = text {
            self.position += 4;
            return Ok(Some(i64::from(digit - b'0')));
        }
        let window = &text[..text.len().min(integer::TEXT_BYTES_MAX + 1)];
        let Some(end) = window.iter().position(|byte| *byte == b'\r') else {
            let may_continue = window.is_empty()
                || window == b"-"
                || (window.len() <= integer::TEXT_BYTES_MAX && integer::parse(window).is_some());
            return if may_continue { Ok(None) } else { Err(invalid) };
        };
        let number = integer::parse(&window[..end]).ok_or(invalid)?;
        match text.get(end + 1) {
            None => Ok(None),
            Some(b'\n') => {
                self.position += end + 3;
                Ok(Some(number))
            }
            Some(_) => Err(invalid),
        }
    }

    fn argument_count(&self, count: i64) -> Result<usize, ProtocolError> {
        if !self.is_trusted && count > Limits::UNTRUSTED_ARGUMENTS_MAX as i64 {
            return Err(ProtocolError::UntrustedMultibulkLength);
        }
        usize::try_from(count)
            .ok()
            .filter(|count| *count <= self.limits.arguments_max)
            .ok_or(ProtocolError::InvalidMultibulkLength)
    }

    fn bulk_bytes(&self, bytes: i64) -> Result<usize, ProtocolError> {
        if !self.is_trusted && bytes > Limits::UNTRUSTED_BULK_BYTES_MAX as i64 {
            return Err(ProtocolError::UntrustedBulkLength);
        }
        let bytes = usize::try_from(bytes)
            .ok()
            .filter(|bytes| *bytes <= self.limits.bulk_bytes_max)
            .ok_or(ProtocolError::InvalidBulkLength)?;
        match self.position.checked_add(bytes).and_then(|end| end.checked_add(2)) {
            Some(end) if end <= self.limits.frame_bytes_max => Ok(bytes),
            _ => Err(ProtocolError::FrameTooLong),
        }
    }

    /// Not all data of an argument that ends at `end` has arrived; a wrong first byte of its line end shows already.
    #[cold]
    fn unfinished_data(frame: &[u8], end: usize) -> Result<Progress, ProtocolError> {
        match frame.get(end) {
            Some(byte) if *byte != b'\r' => Err(ProtocolError::ExpectedLineEnd),
            _ => Ok(Progress::Incomplete { missing_bytes_min: end + 2 - frame.len() }),
        }
    }

    fn inline(&mut self, frame: &[u8]) -> Result<Progress, ProtocolError> {
        let unsearched = &frame[self.position..];
        let Some(found) = unsearched.iter().position(|byte| matches!(byte, b'\n' | 0)) else {
            self.position = frame.len();
            return if frame.len() > self.limits.inline_bytes_max {
                Err(ProtocolError::InlineTooLong)
            } else {
                Ok(Progress::Incomplete { missing_bytes_min: 1 })
            };
        };
        let end = self.position + found;
        if end > self.limits.inline_bytes_max {
            return Err(ProtocolError::InlineTooLong);
        }
        if frame[end] == 0 {
            return Err(ProtocolError::InlineNul);
        }
        let line = frame[..end].strip_suffix(b"\r").unwrap_or(&frame[..end]);
        self.is_inline = true;
        inline::split(line, &mut self.words, &mut self.spans)?;
        self.position = end + 1;
        Ok(self.complete())
    }
}

/// Copied arguments of a frame, and its length in bytes.
pub type Frame = (Vec<Vec<u8>>, usize);

/// Parses one frame from the front of `bytes` in one go; `None` if it is incomplete. For tools and tests: it copies,
/// and starts over at every call, where a connection keeps a [`Parser`].
pub fn parse(bytes: &[u8], limits: Limits) -> Result<Option<Frame>, ProtocolError> {
    let mut parser = Parser::new(limits);
    match parser.parse(bytes)? {
        Progress::Incomplete { .. } => Ok(None),
        Progress::Complete { consumed } => {
            Ok(Some((parser.arguments(bytes).iter().map(<[u8]>::to_vec).collect(), consumed)))
        }
    }
}
