//! Items as commands see them, and what commands do with them.

use std::any::Any;
use std::error::Error;
use std::fmt;

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string of bytes.
    String,
    /// A hash: the value describes it, its fields are elsewhere.
    Hash,
    /// A set: the value describes it, its members are elsewhere.
    Set,
    /// A type of a later version.
    Unknown,
}

impl Kind {
    /// Its name in the replies of `TYPE`.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Hash => "hash",
            Self::Set => "set",
            Self::Unknown => "unknown",
        }
    }
}

/// The number of the members of a key: never used again for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CollectionId(pub u64);

/// An item that a store has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its value.
    pub value: &'a [u8],
    /// Set by memcached clients, and only returned to them.
    pub flags: u32,
    /// Milliseconds since 1970 from which on it is absent; `None` if it does not expire.
    pub expires_at_ms: Option<u64>,
    /// What memcached's meta protocol has noted of it.
    pub mark: Mark,
}

/// What memcached's meta protocol notes of a string. Writes of other clients remove it with the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The CAS identifier, if it is not to be derived from the value; otherwise 0.
    pub cas: u64,
    /// Whether the value is out of date.
    pub is_stale: bool,
    /// Whether a client is making the next value.
    pub has_winner: bool,
}

impl<'a> Found<'a> {
    /// The value of a string; `None` for other types.
    #[inline]
    pub fn string(self) -> Option<&'a [u8]> {
        (self.kind == Kind::String).then_some(self.value)
    }
}

/// What is stored with a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Set by memcached clients, and only returned to them.
    pub flags: u32,
    /// Milliseconds since 1970 from which on the item is absent; `None` if it does not expire.
    pub expires_at_ms: Option<u64>,
}

/// The decision of a caller about an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It stays as it is.
    Keep,
    /// It becomes a string of this value and keeps that part of the data stored with the old one, or is created with
    /// the value alone.
    Insert(Vec<u8>, Keep),
    /// It becomes a string of this value with these attributes.
    InsertWith(Vec<u8>, Attributes),
    /// It becomes a string of this value with these attributes and this mark.
    InsertMarked(Vec<u8>, Attributes, Mark),
    /// It becomes an item of this type and keeps its expiry.
    InsertKind(Kind, Vec<u8>),
    /// It keeps its value and flags, and expires then; `None` means never.
    Expire(Option<u64>),
    /// It is removed.
    Remove,
}

/// The data stored with an item's value that the item keeps when it gets another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Neither its expiry nor its flags: it is a new item under an old key.
    Nothing,
    /// Its expiry. The flags describe the old value and go with it.
    Expiry,
    /// Its expiry and its flags: the value is the old one, changed.
    Everything,
    /// Nothing, and the item expires at this time, in milliseconds since 1970.
    NothingUntil(u64),
}

/// What a store has noted of a key that is watched until this is dropped. Only that store can read it.
pub type Watch = Box<dyn Any + Send>;

/// The key holds another type than the operation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType;

impl WrongType {
    /// The error reply.
    pub(crate) const TEXT: &'static str = "WRONGTYPE Operation against a key holding the wrong kind of value";
}

impl fmt::Display for WrongType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the key holds another type")
    }
}

impl Error for WrongType {}

/// The store keeps only strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoCollections;

impl fmt::Display for NoCollections {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("this store keeps strings only, no hashes and sets")
    }
}

impl Error for NoCollections {}
