//! Replies to bytes.

use crate::integer;

/// The protocol version of a connection, chosen with `HELLO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Version {
    /// Arrays stand in for maps and sets, and an absent value is a bulk string of length -1. The default.
    #[default]
    Resp2,
    /// With maps, sets, verbatim text and one null.
    Resp3,
}

/// Appends replies to a buffer, in the form that the connection's version asks for.
///
/// Aggregates are written as a header and then their members, so that nothing is assembled first. The caller must write
/// the promised number of members.
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
    version: Version,
    room: Option<&'a dyn Room>,
}

/// Decides how long a buffer of replies may become.
pub trait Room {
    /// Whether the buffer may have `bytes` bytes. Once this was denied, what exceeds it is not written.
    fn admits(&self, bytes: usize) -> bool;
}

impl<'a> Reply<'a> {
    /// Replies appended to `out`.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>, version: Version) -> Self {
        Self { out, version, room: None }
    }

    /// Like [`Reply::new`], with as many bytes of texts as `room` admits.
    #[inline]
    pub fn within(out: &'a mut Vec<u8>, version: Version, room: Option<&'a dyn Room>) -> Self {
        Self { out, version, room }
    }

    /// The version that is written.
    #[inline]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Writes the replies from here on in `version` (`HELLO` and `RESET` answer in the version that they set).
    pub fn set_version(&mut self, version: Version) {
        self.version = version;
    }

    /// Replies appended to the same buffer, in the version of now.
    pub fn reborrow(&mut self) -> Reply<'_> {
        Reply { out: self.out, version: self.version, room: self.room }
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

    /// `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// A simple string; line ends in `text` become spaces.
    pub fn simple(&mut self, text: impl AsRef<[u8]>) {
        self.out.push(b'+');
        self.line(text.as_ref());
    }

    /// An error. `text` starts with its code (`ERR …`); line ends become spaces.
    pub fn error(&mut self, text: impl AsRef<[u8]>) {
        self.out.push(b'-');
        self.line(text.as_ref());
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, number: i64) {
        self.out.push(b':');
        integer::write(number, self.out);
        self.out.extend_from_slice(b"\r\n");
    }

    /// A count as an integer.
    #[inline]
    pub fn count(&mut self, count: usize) {
        self.integer(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// A bulk string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        if !self.admits(bytes.len()) {
            return;
        }
        self.out.reserve(bytes.len() + 16);
        self.header(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// A bulk string of `len` bytes, which `write` appends. If it fails, the reply must be rewound.
    pub fn bulk_with<E>(
        &mut self,
        len: usize,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.admits(len) {
            return Ok(());
        }
        self.out.reserve(len + 16);
        self.header(b'$', len);
        write(self.out)?;
        self.out.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// The beginning of a bulk string of `len` bytes; these and a line end must follow.
    pub fn bulk_header(&mut self, len: usize) {
        self.header(b'$', len);
    }

    /// Whether a text of `bytes` bytes may follow.
    #[inline]
    pub fn admits(&self, bytes: usize) -> bool {
        self.room.is_none_or(|room| room.admits(self.out.len() + bytes + 32))
    }

    /// A bulk string, or null for `None`.
    #[inline]
    pub fn optional_bulk(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// A decimal number as a bulk string.
    pub fn bulk_unsigned(&mut self, number: u64) {
        let mut text = Vec::with_capacity(integer::TEXT_BYTES_MAX);
        integer::write_unsigned(number, &mut text);
        self.bulk(&text);
    }

    /// Text for people: verbatim in RESP3, a bulk string in RESP2.
    pub fn verbatim_text(&mut self, text: &str) {
        match self.version {
            Version::Resp2 => self.bulk(text.as_bytes()),
            Version::Resp3 => {
                self.header(b'=', text.len() + 4);
                self.out.extend_from_slice(b"txt:");
                self.out.extend_from_slice(text.as_bytes());
                self.out.extend_from_slice(b"\r\n");
            }
        }
    }

    /// The absent value.
    #[inline]
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.version {
            Version::Resp2 => b"$-1\r\n",
            Version::Resp3 => b"_\r\n",
        });
    }

    /// The absent array.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(match self.version {
            Version::Resp2 => b"*-1\r\n",
            Version::Resp3 => b"_\r\n",
        });
    }

    /// An array of `members` replies, which follow.
    #[inline]
    pub fn array(&mut self, members: usize) {
        self.header(b'*', members);
    }

    /// A set of `members` replies, which follow; an array in RESP2.
    pub fn set(&mut self, members: usize) {
        self.header(if self.version == Version::Resp3 { b'~' } else { b'*' }, members);
    }

    /// A message of `members` parts, which follow, that is no reply; an array in RESP2.
    pub fn push(&mut self, members: usize) {
        self.header(if self.version == Version::Resp3 { b'>' } else { b'*' }, members);
    }

    /// A map of `pairs` keys each followed by its value; an array of twice as many members in RESP2.
    pub fn map(&mut self, pairs: usize) {
        match self.version {
            Version::Resp2 => self.header(b'*', 2 * pairs),
            Version::Resp3 => self.header(b'%', pairs),
        }
    }

    /// Whole replies that were written elsewhere, for the version of this connection.
    pub fn raw(&mut self, replies: &[u8]) {
        if !self.admits(replies.len()) {
            return;
        }
        self.out.extend_from_slice(replies);
    }

    #[inline]
    fn header(&mut self, kind: u8, length: usize) {
        self.out.push(kind);
        integer::write_unsigned(length as u64, self.out);
        self.out.extend_from_slice(b"\r\n");
    }

    fn line(&mut self, text: &[u8]) {
        let start = self.out.len();
        self.out.extend_from_slice(text);
        for byte in &mut self.out[start..] {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.out.extend_from_slice(b"\r\n");
    }
}
