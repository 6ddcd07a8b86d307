//! [`Lookup`]: the interface of an index to a buffer in front of it.

use super::reference::Reference;

/// An index that a buffer may be placed in front of.
///
/// The contract, by which no answer is ever stale: between two changes of a key that the buffer is notified of, the
/// index answers its lookups with one item at one reference or with none. An index that moves items by itself must
/// notify the buffer of each move as a change.
pub trait Lookup {
    /// The type of a lookup's key.
    type Key: ?Sized;
    /// What a lookup returns: a copy, or something that keeps what it refers to unchanged.
    type Item<'a>
    where
        Self: 'a;

    /// A 64-bit hash of the key whose bits are all well distributed.
    fn hash(&self, key: &Self::Key) -> u64;

    /// Returns the key's item and where it is, or `None` if there is no such key.
    fn search<'a>(&'a self, key: &Self::Key) -> Option<(Reference, Self::Item<'a>)>;

    /// Like `search`, for an index that can use the hash.
    #[inline(always)]
    fn search_hashed<'a>(&'a self, key: &Self::Key, hash: u64) -> Option<(Reference, Self::Item<'a>)> {
        let _ = hash;
        self.search(key)
    }

    /// Returns the item at `reference`, if it is that of exactly this key.
    ///
    /// `reference` was emitted for some key of the same tag, and no change of it was noted before the lookup began. A
    /// change may begin at any moment, so the read may be torn; then the buffer discards what this returns. A torn read
    /// must cause neither a failure nor an access out of bounds.
    fn resolve<'a>(&'a self, key: &Self::Key, reference: Reference) -> Option<Self::Item<'a>>;
}

/// A buffer may be placed in front of a borrowed index too.
impl<L: Lookup> Lookup for &L {
    type Key = L::Key;
    type Item<'a>
        = L::Item<'a>
    where
        Self: 'a;

    #[inline(always)]
    fn hash(&self, key: &Self::Key) -> u64 {
        L::hash(self, key)
    }

    #[inline(always)]
    fn search<'a>(&'a self, key: &Self::Key) -> Option<(Reference, Self::Item<'a>)> {
        L::search(self, key)
    }

    #[inline(always)]
    fn search_hashed<'a>(&'a self, key: &Self::Key, hash: u64) -> Option<(Reference, Self::Item<'a>)> {
        L::search_hashed(self, key, hash)
    }

    #[inline(always)]
    fn resolve<'a>(&'a self, key: &Self::Key, reference: Reference) -> Option<Self::Item<'a>> {
        L::resolve(self, key, reference)
    }
}
