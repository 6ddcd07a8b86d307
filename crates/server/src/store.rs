//! What the commands need of a store.
//!
//! The server speaks to this trait so that one set of commands serves the flash engine and the memory engine. Replies
//! are written from the borrowed values that a store hands out, without a copy in between where the store has none.

/// Why a store refused or failed; its text is sent to the client after `ERR `.
pub type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// An item as [`Store::update`] has found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// Its value.
    pub value: &'a [u8],
    /// Milliseconds since 1970 from which on it is absent; `None` if it does not expire.
    pub expires_at_ms: Option<u64>,
}

/// The decision of [`Store::update`]'s caller about an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It stays as it is.
    Keep,
    /// It gets this value and keeps that part of the data stored with the old one, or is created with the value alone.
    Insert(Vec<u8>, Keep),
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

/// Whether a store takes writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreHealth {
    /// It does.
    Healthy,
    /// It does, and background work fails and is tried again automatically.
    Retrying {
        /// The latest failure.
        reason: String,
    },
    /// It was opened for reading only.
    ReadOnly,
    /// It takes none since a failure.
    Failed {
        /// The first failure.
        reason: String,
        /// Whether [`Store::resume`] may help.
        resumable: bool,
    },
}

/// A map from keys to values, shared by all worker threads. Every method is atomic with respect to the others.
///
/// Writes may return before they are durable: [`Store::commit`] waits for all of them.
pub trait Store: Send + Sync + 'static {
    /// Makes all writes so far as durable as the store promises. A worker calls it once for all commands that it has
    /// read, and sends no reply before. By default it does nothing: writes are durable when they return.
    ///
    /// # Errors
    /// When it is not known which of the writes since the last commit will survive a crash.
    fn commit(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Looks up `keys` together, so that their reads overlap, and calls `each` with the position of every key and its
    /// value, once a key and in the order of the keys.
    ///
    /// # Errors
    /// When one lookup fails; `each` has then been called for a prefix of the keys.
    fn get_many(&self, keys: &[&[u8]], each: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<(), StoreError>;

    /// Whether there is an item under `key`.
    fn contains(&self, key: &[u8]) -> Result<bool, StoreError>;

    /// Calls `found` with the item under `key`, if there is one.
    fn get(&self, key: &[u8], found: &mut dyn FnMut(Found<'_>)) -> Result<(), StoreError>;

    /// Sets the value of `key`, and when it expires, in milliseconds since 1970. An earlier expiry and flags go.
    fn insert(&self, key: &[u8], value: &[u8], expires_at_ms: Option<u64>) -> Result<(), StoreError>;

    /// Sets several keys to their values, all or none; of equal keys the last wins. Expiries and flags go.
    fn insert_many(&self, pairs: &mut dyn Iterator<Item = (&[u8], &[u8])>) -> Result<(), StoreError>;

    /// Reads the item under `key`, lets `change` decide, and applies that before any other thread writes the item.
    /// `change` may be called several times; the last call counts.
    fn update(
        &self,
        key: &[u8],
        change: &mut dyn FnMut(Option<Found<'_>>) -> Change,
    ) -> Result<(), StoreError>;

    /// Appends `bytes` to the value of `key`, empty if there is no item, and returns its new length. Expiry and flags
    /// stay.
    fn append(&self, key: &[u8], bytes: &[u8]) -> Result<usize, StoreError>;

    /// Visits approximately `count` keys from `cursor` on and returns the next cursor. 0 starts, and is returned at the
    /// end. From start to end, every key that was there all the time is visited at least once.
    fn scan(&self, cursor: u64, count: usize, each: &mut dyn FnMut(&[u8])) -> Result<u64, StoreError>;

    /// Approximate number of items. Costs nothing.
    fn approximate_len(&self) -> u64;

    /// Exact number of items, at one moment while this runs. May read all that is stored, so it calls `go_on` now and
    /// then; returns `None` if that returned `false`.
    fn count(&self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<u64>, StoreError>;

    /// Like [`Store::count`], but `None` if that would visit more than approximately `visits_max` items.
    fn count_within(&self, visits_max: u64) -> Result<Option<u64>, StoreError>;

    /// Removes all items.
    fn clear(&self) -> Result<(), StoreError>;

    /// Whether the store takes writes. Costs nothing.
    fn health(&self) -> StoreHealth;

    /// Lets a failed store continue, if the cause of the failure has passed.
    fn resume(&self) -> Result<(), StoreError>;

    /// Bytes of memory that the store holds.
    fn memory_bytes(&self) -> u64;

    /// Maximum number of bytes of memory that the store may hold, 0 for no limit.
    fn memory_bytes_max(&self) -> u64;
}
