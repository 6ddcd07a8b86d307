//! [`Lookup`]: what an index tells a buffer in front of it.

use super::reference::Reference;

/// An index that a buffer may stand in front of.
///
/// The contract, by which no answer is ever stale: between two changes of a key that the buffer is told of, the index
/// answers its lookups with one item at one reference or with none. An index that moves items by itself has to tell
/// the buffer each move as a change.
pub trait Lookup {
    /// What is looked up.
    type Key: ?Sized;
    /// What a lookup returns: a copy, or something that keeps what it refers to unchanged.
    type Item<'a>
    where
        Self: 'a;

    /// A 64-bit hash of the key, all of whose bits are good.
    fn hash(&self, key: &Self::Key) -> u64;

    /// The key's item and where it is; `None` if there is no such key.
    fn search<'a>(&'a self, key: &Self::Key) -> Option<(Reference, Self::Item<'a>)>;

    /// The same, by an index that can make use of the hash.
    #[inline(always)]
    fn search_hashed<'a>(&'a self, key: &Self::Key, hash: u64) -> Option<(Reference, Self::Item<'a>)> {
        let _ = hash;
        self.search(key)
    }

    /// The item at `reference`, if it is that of exactly this key.
    ///
    /// `reference` is one that was emitted for some key of the same tag and of which no change was noted before the
    /// lookup began. A change may begin at any moment, so that what is read may be torn; then the buffer throws away
    /// what this returns. It must neither fail nor read out of bounds for that.
    fn resolve<'a>(&'a self, key: &Self::Key, reference: Reference) -> Option<Self::Item<'a>>;
}

/// A buffer may stand in front of a borrowed index too.
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
