//! [`Content`]: the requests or responses of a datagram, checked before the first is returned.

use super::{Malformed, Request, Response};

/// What a datagram can have several of.
pub trait Element<'a>: Sized {
    /// The first element of `bytes`, and what follows it; `None` if they are wrong.
    fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])>;
}

/// The requests or responses of a datagram, in their order.
#[derive(Clone, Debug)]
pub struct Content<'a, E> {
    bytes: &'a [u8],
    count: u8,
    element: std::marker::PhantomData<E>,
}

impl<'a, E: Element<'a>> Content<'a, E> {
    /// Checks that `bytes` are `count` elements and nothing else.
    fn check(bytes: &'a [u8], count: u8) -> Result<Self, Malformed> {
        let mut rest = bytes;
        for _ in 0..count {
            rest = E::read(rest).ok_or(Malformed::Invalid)?.1;
        }
        if rest.is_empty() {
            Ok(Self { bytes, count, element: std::marker::PhantomData })
        } else {
            Err(Malformed::Invalid)
        }
    }
}

impl<'a> Content<'a, Request<'a>> {
    /// The `count` requests of the content of a datagram.
    ///
    /// # Errors
    /// [`Malformed::Invalid`] if there are fewer or more bytes, or one of them is wrong.
    #[inline]
    pub fn requests(bytes: &'a [u8], count: u8) -> Result<Self, Malformed> {
        Self::check(bytes, count)
    }
}

impl<'a> Content<'a, Response<'a>> {
    /// The `count` responses of the content of a datagram.
    ///
    /// # Errors
    /// [`Malformed::Invalid`] if there are fewer or more bytes, or one of them is wrong.
    #[inline]
    pub fn responses(bytes: &'a [u8], count: u8) -> Result<Self, Malformed> {
        Self::check(bytes, count)
    }
}

impl<'a, E: Element<'a>> Iterator for Content<'a, E> {
    type Item = E;

    #[inline]
    fn next(&mut self) -> Option<E> {
        self.count = self.count.checked_sub(1)?;
        let (element, rest) = E::read(self.bytes)?;
        self.bytes = rest;
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.count), Some(usize::from(self.count)))
    }
}

impl<'a, E: Element<'a>> ExactSizeIterator for Content<'a, E> {}
