//! What a line means.

use super::words::Words;
use super::{Error, Refusal, Request, classic, meta};

/// A line that was understood.
#[derive(Debug)]
pub(super) enum Line<'a> {
    /// A whole request.
    Request(Request<'a>),
    /// A request whose value follows.
    Block(Block<'a>),
    /// A refused request, followed by its value: the number of bytes, line end included.
    Skip {
        /// The answer.
        refusal: Refusal<'a>,
        /// Bytes to skip.
        bytes: u64,
    },
}

/// A storage request without its value.
#[derive(Debug)]
pub(super) struct Block<'a> {
    /// The request, with an empty value.
    pub(super) request: Request<'a>,
    /// Length of the value in bytes.
    pub(super) bytes: usize,
}

impl<'a> Line<'a> {
    /// Understands `line`, a line without its end.
    #[inline]
    pub(super) fn parse(line: &'a [u8]) -> Result<Self, Refusal<'a>> {
        let mut words = Words::of(line);
        let Some(command) = words.next() else { return Err(Refusal::new(Error::Unknown)) };
        match command {
            [b'm', letter] => meta::parse(*letter, words),
            _ => classic::parse(command, words),
        }
    }
}

impl<'a> Block<'a> {
    /// The request with its value.
    #[inline]
    pub(super) fn with_value(self, value: &'a [u8]) -> Request<'a> {
        let mut request = self.request;
        match &mut request {
            Request::Store { store, .. } => store.value = value,
            Request::MetaStore(meta) => meta.store.value = value,
            _ => unreachable!("only storage requests have a value"),
        }
        request
    }

    /// The refusal of a value that is too large.
    pub(super) fn too_large(&self) -> Refusal<'a> {
        match self.request {
            Request::Store { store, noreply } => Refusal {
                discard: store.is_unconditional().then_some(store.key),
                ..Refusal::silent_if(Error::TooLarge, noreply)
            },
            Request::MetaStore(meta) => {
                Refusal { discard: Some(meta.store.key), ..Refusal::new(Error::TooLarge) }
            }
            _ => unreachable!("only storage requests have a value"),
        }
    }

    /// The refusal of a value without its line end.
    pub(super) fn bad_chunk(&self) -> Refusal<'a> {
        Refusal::silent_if(Error::BadDataChunk, self.request.is_silent())
    }
}
