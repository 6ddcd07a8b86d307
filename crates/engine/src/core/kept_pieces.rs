//! [`KeptPieces`]: records of a large value that another item will refer to.

use super::shared::Shared;
use crate::blob::Pieces;

/// Records to which another item is about to refer. They are counted before it does, so that the count is never too
/// low.
#[derive(Debug)]
pub(crate) struct KeptPieces<'a> {
    shared: &'a Shared,
    pieces: Pieces,
}

impl<'a> KeptPieces<'a> {
    pub fn remember(shared: &'a Shared, pieces: Pieces) -> Self {
        pieces.iter().for_each(|piece| shared.blobs.remember(piece));
        Self { shared, pieces }
    }

    /// Declares that an item refers to them from now on.
    pub fn commit(mut self) {
        self.pieces.clear();
    }
}

impl Drop for KeptPieces<'_> {
    fn drop(&mut self) {
        self.pieces.iter().for_each(|piece| self.shared.blobs.forget(piece));
    }
}
