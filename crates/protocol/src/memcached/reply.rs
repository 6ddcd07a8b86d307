//! Replies of the classic protocol to bytes.

use super::{Error, Key};
use crate::integer;

/// Appends replies to a buffer. Whether a reply is wanted is the caller's to ask
/// ([`Request::is_silent`](super::Request::is_silent)), except for quiet meta requests.
pub struct Reply<'a> {
    pub(super) out: &'a mut Vec<u8>,
}

/// A reply of one fixed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The value is stored.
    Stored,
    /// The condition of `add`, `replace`, `append` or `prepend` does not hold.
    NotStored,
    /// The item has another CAS identifier.
    Exists,
    /// There is no item.
    NotFound,
    /// The item is deleted.
    Deleted,
    /// The item has its new expiry time.
    Touched,
    /// Done: `flush_all`, `verbosity`, `stats detail`.
    Ok,
    /// Statistics are reset.
    Reset,
}

impl Answer {
    /// The line without its CR LF.
    pub fn text(self) -> &'static str {
        match self {
            Self::Stored => "STORED",
            Self::NotStored => "NOT_STORED",
            Self::Exists => "EXISTS",
            Self::NotFound => "NOT_FOUND",
            Self::Deleted => "DELETED",
            Self::Touched => "TOUCHED",
            Self::Ok => "OK",
            Self::Reset => "RESET",
        }
    }
}

impl<'a> Reply<'a> {
    /// Replies appended to `out`.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Bytes in the buffer, earlier replies included.
    #[inline]
    pub fn buffered_bytes(&self) -> usize {
        self.out.len()
    }

    /// Discards what was written after the buffer held `bytes`: for a reply that turns into an error halfway.
    pub fn rewind(&mut self, bytes: usize) {
        self.out.truncate(bytes);
    }

    /// A fixed line.
    #[inline]
    pub fn answer(&mut self, answer: Answer) {
        self.line(answer.text().as_bytes());
    }

    /// An error line; nothing for errors that close the connection in silence.
    pub fn error(&mut self, error: Error) {
        super::Refusal::new(error).write(self.out);
    }

    /// An error of the server's own, `SERVER_ERROR` and `text`; line ends in it become spaces.
    pub fn server_error(&mut self, text: &str) {
        self.out.extend_from_slice(b"SERVER_ERROR ");
        self.one_line(text.as_bytes());
        self.line_end();
    }

    /// An item of `get` (`cas` absent) or `gets`. [`Reply::end`] follows the last one.
    #[inline]
    pub fn value(&mut self, key: Key<'_>, client_flags: u32, value: &[u8], cas: Option<u64>) {
        self.out.reserve(key.text().len() + value.len() + 64);
        self.value_header(key, client_flags, value.len(), cas);
        self.out.extend_from_slice(value);
        self.line_end();
    }

    /// A value behind its line ([`Reply::value_header`], [`Reply::meta_hit_header`]).
    #[inline]
    pub fn value_block(&mut self, value: &[u8]) {
        self.out.reserve(value.len() + 2);
        self.out.extend_from_slice(value);
        self.line_end();
    }

    /// The line in front of a value of `bytes` bytes, for values that are not written from one slice. The value and a
    /// CR LF must follow.
    #[inline]
    pub fn value_header(&mut self, key: Key<'_>, client_flags: u32, bytes: usize, cas: Option<u64>) {
        self.out.extend_from_slice(b"VALUE ");
        self.out.extend_from_slice(key.text());
        self.out.push(b' ');
        integer::write_unsigned(u64::from(client_flags), self.out);
        self.out.push(b' ');
        integer::write_unsigned(bytes as u64, self.out);
        if let Some(cas) = cas {
            self.out.push(b' ');
            integer::write_unsigned(cas, self.out);
        }
        self.line_end();
    }

    /// `END`, after the items of a `get` and the lines of `stats`.
    #[inline]
    pub fn end(&mut self) {
        self.line(b"END");
    }

    /// The number that `incr` or `decr` made.
    pub fn number(&mut self, number: u64) {
        integer::write_unsigned(number, self.out);
        self.line_end();
    }

    /// A line of `stats`; line ends in `value` become spaces. [`Reply::end`] follows the last one.
    pub fn statistic(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.out.extend_from_slice(b"STAT ");
        self.one_line(name.as_bytes());
        self.out.push(b' ');
        self.one_line(value.as_ref());
        self.line_end();
    }

    /// The reply to `version`.
    pub fn version(&mut self, version: &str) {
        self.out.extend_from_slice(b"VERSION ");
        self.one_line(version.as_bytes());
        self.line_end();
    }

    #[inline]
    pub(super) fn line(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
        self.line_end();
    }

    #[inline]
    pub(super) fn line_end(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }

    fn one_line(&mut self, text: &[u8]) {
        self.out.extend(text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
    }
}
