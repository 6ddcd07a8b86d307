//! What the commands need of a store.
//!
//! The server speaks to these traits so that one set of commands serves the flash engine and the memory engine, alone
//! and within a transaction. Replies are written from the borrowed values that a store hands out, without a copy in
//! between where the store has none.

mod health;
mod item;
mod library_change;
mod long_value;
mod number;
mod report;
pub(crate) mod stored;
mod versions;

pub use health::StoreHealth;
pub use item::{Attributes, Change, CollectionId, Found, Keep, Kind, Mark, NoCollections, Watch, WrongType};
pub use library_change::{LibraryChange, NamedSources};
pub(crate) use long_value::STREAM_BYTES;
pub use long_value::{FoundOrLong, LongValue};
pub use number::DatabaseNumber;
pub use report::{NothingStored, Report, ReportValue};
pub use versions::{ServedVersion, Versions};

use std::path::Path;

use crate::MetricSink;

/// Why a store refused or failed; its text is sent to the client after `ERR `.
pub type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// Numbered databases, shared by all worker threads or seen from within a transaction.
pub trait Databases {
    /// A database that [`Store::open`] has opened.
    ///
    /// # Panics
    /// When it is not open.
    fn database(&self, number: DatabaseNumber) -> &dyn Database;

    /// Calls `body` with databases whose reads and writes take effect at one moment, all or none, when `body` has
    /// returned. If a key that it has read was written meanwhile, it is called again: only its last call counts. Within
    /// a transaction, `body` takes part in that.
    ///
    /// # Errors
    /// The error of `body`, after which nothing has happened, or that of the store.
    fn atomically(
        &self,
        body: &mut dyn FnMut(&dyn Databases) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;

    /// Calls `body`, which only reads, with databases as they are at one moment, as [`Databases::atomically`] does. A
    /// store may let writes come in between where it would stop all other threads, or try without end.
    ///
    /// # Errors
    /// The error of `body`, or that of the store.
    fn at_one_moment(
        &self,
        body: &mut dyn FnMut(&dyn Databases) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.atomically(body)
    }
}

/// Numbered databases with a common log, shared by all worker threads.
///
/// Writes may return before they are durable: [`Store::commit`] waits for all of them.
pub trait Store: Databases + Send + Sync + 'static {
    /// Makes all writes so far as durable as the store promises. A worker calls it once for all commands that it has
    /// read, and sends no reply before. By default it does nothing: writes are durable when they return.
    ///
    /// # Errors
    /// When it is not known which of the writes since the last commit will survive a crash.
    fn commit(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether a commit waits for a device. Workers then serve other clients meanwhile. By default it does not.
    fn commit_waits(&self) -> bool {
        false
    }

    /// Whether [`Database::prefetch`] is of use. By default it is not.
    fn prefetches(&self) -> bool {
        false
    }

    /// Opens or creates a database. Costs nothing if it is open.
    fn open(&self, number: DatabaseNumber) -> Result<(), StoreError>;

    /// Exchanges two databases: what was in one is in the other. Not within a transaction.
    ///
    /// # Errors
    /// By default it is refused.
    fn swap(&self, _one: DatabaseNumber, _other: DatabaseNumber) -> Result<(), StoreError> {
        Err("this store cannot exchange databases".into())
    }

    /// The databases that are open, in order.
    fn opened(&self) -> Vec<DatabaseNumber>;

    /// Removes some members of collections to which no key refers. Returns whether there are certainly more: then it
    /// should be called again soon, otherwise after a second.
    fn tidy(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Whether the store takes writes. Costs nothing.
    fn health(&self) -> StoreHealth;

    /// Lets a failed store continue, if the cause of the failure has passed.
    fn resume(&self) -> Result<(), StoreError>;

    /// The seed of XXH3-64 that chooses by key which part of the store has an item, if requests are to be directed by
    /// it: each worker then uses parts of its own. By default there are no such parts.
    fn direction_seed(&self) -> Option<u64> {
        None
    }

    /// Writes the store's figures, for those who watch the server. By default it has none.
    fn observe(&self, _: &mut dyn MetricSink) {}

    /// Whether the items are on a device: then it can be backed up and verified.
    fn is_stored(&self) -> bool {
        false
    }

    /// Number of items written so far, from any number on.
    fn changes(&self) -> u64 {
        0
    }

    /// Makes a backup in a new directory below `root` and checks it; then removes the oldest ones there until `kept`
    /// are left, if that is given. Takes long.
    ///
    /// # Errors
    /// [`NothingStored`], or why there is no new backup.
    fn back_up(&self, _root: &Path, _kept: Option<usize>) -> Result<Report, StoreError> {
        Err(NothingStored.into())
    }

    /// Reads and checks all that is stored. Takes long. Damage is no error, but in the report.
    ///
    /// # Errors
    /// [`NothingStored`], or that something cannot be read.
    fn verify(&self) -> Result<Report, StoreError> {
        Err(NothingStored.into())
    }

    /// Figures of the keyspace of this name.
    fn keyspace_figures(&self, _keyspace: &str) -> Result<Report, StoreError> {
        Err(NothingStored.into())
    }

    /// The plan of the keyspace of this name, and why it is that.
    fn plan(&self, _keyspace: &str) -> Result<Report, StoreError> {
        Err(NothingStored.into())
    }

    /// Name and source of each library of functions. Empty for a store that keeps no libraries.
    fn libraries(&self) -> Result<NamedSources, StoreError> {
        Ok(Vec::new())
    }

    /// Keeps changes of libraries, all or none. Only one thread at a time calls this. By default they live as long as
    /// the server.
    fn change_libraries(&self, _changes: &[LibraryChange<'_>]) -> Result<(), StoreError> {
        Ok(())
    }

    /// The versions of which the store serves one, if it does that. By default it does not.
    fn versions(&self) -> Option<&dyn Versions> {
        None
    }

    /// Bytes of memory that the store holds.
    fn memory_bytes(&self) -> u64;

    /// Maximum number of bytes of memory that the store may hold, 0 for no limit.
    fn memory_bytes_max(&self) -> u64;

    /// Approximate bytes of memory that it takes to write this many items together, beside their keys and values.
    fn batch_bytes(&self, writes: usize) -> usize {
        64 * writes
    }

    /// What the store does at that limit, by the nearest of Redis' names.
    fn eviction_policy(&self) -> &'static str {
        "noeviction"
    }
}

/// A map from keys to items. Every method is atomic with respect to the others.
pub trait Database {
    /// Looks up `keys` together, so that their reads overlap, and calls `each` with the position of every key and its
    /// item, once a key and in the order of the keys.
    ///
    /// # Errors
    /// When one lookup fails; `each` has then been called for a prefix of the keys.
    fn get_many(
        &self,
        keys: &[&[u8]],
        each: &mut dyn FnMut(usize, Option<Found<'_>>),
    ) -> Result<(), StoreError>;

    /// Takes the items of `keys` into memory, with all reads of a device in flight together, for operations that follow
    /// soon. Returns the number of keys that needed such reads.
    fn prefetch(&self, _keys: &[&[u8]]) -> Result<usize, StoreError> {
        Ok(0)
    }

    /// Like [`Database::get_many`], where long values may come as streams. Before one of them is read, `admits` is
    /// called with the bytes of all of them; if it returns `false`, nothing else happens.
    ///
    /// # Errors
    /// As [`Database::get_many`].
    fn get_many_or_long(
        &self,
        keys: &[&[u8]],
        _admits: &mut dyn FnMut(usize) -> bool,
        each: &mut dyn FnMut(usize, Option<FoundOrLong<'_>>),
    ) -> Result<(), StoreError> {
        self.get_many(keys, &mut |position, found| each(position, found.map(FoundOrLong::Found)))
    }

    /// Whether there is an item under `key`.
    fn contains(&self, key: &[u8]) -> Result<bool, StoreError>;

    /// Calls `found` with the item under `key`, if there is one.
    fn get_any(&self, key: &[u8], found: &mut dyn FnMut(Found<'_>)) -> Result<(), StoreError>;

    /// Calls `found` with the string under `key`, if there is one.
    ///
    /// # Errors
    /// [`WrongType`] if the key holds another type.
    fn get(&self, key: &[u8], found: &mut dyn FnMut(Found<'_>)) -> Result<(), StoreError> {
        let mut is_string = true;
        self.get_any(key, &mut |item| match item.kind {
            Kind::String => found(item),
            _ => is_string = false,
        })?;
        if is_string { Ok(()) } else { Err(WrongType.into()) }
    }

    /// Begins to watch `key`. Not within a transaction.
    fn watch(&self, _key: &[u8]) -> Result<Watch, StoreError> {
        Err("a transaction watches no keys".into())
    }

    /// Whether nobody has written `key` since [`Database::watch`], nor has it expired: then it stays so until the
    /// transaction takes effect. Only within a transaction, before its own writes.
    fn is_unchanged(&self, _key: &[u8], _watch: &Watch) -> Result<bool, StoreError> {
        Err("only a transaction needs what it watches".into())
    }

    /// Whether any key is watched. Changes of members then have to write their key, too.
    fn has_watches(&self) -> bool {
        false
    }

    /// Sets the value of `key`, and when it expires, in milliseconds since 1970. An earlier expiry and flags go.
    fn insert(&self, key: &[u8], value: &[u8], expires_at_ms: Option<u64>) -> Result<(), StoreError> {
        self.insert_with(key, value, Attributes { flags: 0, expires_at_ms })
    }

    /// Sets the value of `key` and its attributes.
    fn insert_with(&self, key: &[u8], value: &[u8], attributes: Attributes) -> Result<(), StoreError>;

    /// Sets several keys to their values, all or none; of equal keys the last wins. Expiries and flags go.
    fn insert_many(&self, pairs: &mut dyn Iterator<Item = (&[u8], &[u8])>) -> Result<(), StoreError>;

    /// Reads the item under `key`, lets `change` decide, and applies that before any other thread writes the item.
    /// `change` may be called several times; the last call counts.
    fn update_any(
        &self,
        key: &[u8],
        change: &mut dyn FnMut(Option<Found<'_>>) -> Change,
    ) -> Result<(), StoreError>;

    /// Like [`Database::update_any`], for a string or an absent key.
    ///
    /// # Errors
    /// [`WrongType`] if the key holds another type.
    fn update(
        &self,
        key: &[u8],
        change: &mut dyn FnMut(Option<Found<'_>>) -> Change,
    ) -> Result<(), StoreError> {
        let mut is_string = true;
        self.update_any(key, &mut |found| {
            is_string = found.is_none_or(|found| found.kind == Kind::String);
            if is_string { change(found) } else { Change::Keep }
        })?;
        if is_string { Ok(()) } else { Err(WrongType.into()) }
    }

    /// Appends `bytes` to the string under `key`, empty if there is no item, and returns its new length. Expiry and
    /// flags stay.
    ///
    /// # Errors
    /// [`WrongType`] if the key holds another type.
    fn append(&self, key: &[u8], bytes: &[u8]) -> Result<usize, StoreError> {
        let mut len = 0;
        self.update(key, &mut |found| {
            let mut value = found.map(|found| found.value.to_vec()).unwrap_or_default();
            value.extend_from_slice(bytes);
            len = value.len();
            if bytes.is_empty() && found.is_some() {
                Change::Keep
            } else {
                Change::Insert(value, Keep::Everything)
            }
        })?;
        Ok(len)
    }

    /// Visits approximately `count` keys from `cursor` on and returns the next cursor. 0 starts, and is returned at the
    /// end. From start to end, every key that was there all the time is visited at least once.
    fn scan(&self, cursor: u64, count: usize, each: &mut dyn FnMut(&[u8])) -> Result<u64, StoreError>;

    /// Approximate number of items. Costs nothing.
    fn approximate_len(&self) -> u64;

    /// Exact number of items, at one moment while this runs. May read all that is stored, so it calls `go_on` now and
    /// then; returns `None` if that returned `false`.
    fn count(&self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<u64>, StoreError>;

    /// Like [`Database::count`], but `None` if that would visit more than approximately `visits_max` items.
    fn count_within(&self, visits_max: u64) -> Result<Option<u64>, StoreError>;

    /// Removes all items.
    ///
    /// # Errors
    /// Within a transaction, where this is not possible.
    fn clear(&self) -> Result<(), StoreError>;

    /// Reserves a number for the members of `key`. Only within [`Databases::atomically`], like the other methods that
    /// write members.
    ///
    /// # Errors
    /// [`NoCollections`] if the store keeps only strings.
    fn new_collection(&self, _key: &[u8]) -> Result<CollectionId, StoreError> {
        Err(NoCollections.into())
    }

    /// Notes that the collection is under `key` now.
    fn move_collection(&self, _id: CollectionId, _key: &[u8]) -> Result<(), StoreError> {
        Err(NoCollections.into())
    }

    /// Lets the members of a collection be removed in the background: no item refers to it any more.
    fn discard_collection(&self, _id: CollectionId) -> Result<(), StoreError> {
        Err(NoCollections.into())
    }

    /// The value of a member, if there is one.
    fn member(&self, _id: CollectionId, _member: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Err(NoCollections.into())
    }

    /// Sets the value of a member.
    fn insert_member(&self, _id: CollectionId, _member: &[u8], _value: &[u8]) -> Result<(), StoreError> {
        Err(NoCollections.into())
    }

    /// Removes a member.
    fn remove_member(&self, _id: CollectionId, _member: &[u8]) -> Result<(), StoreError> {
        Err(NoCollections.into())
    }

    /// Calls `each` with all members, as they were at one moment, and their values, in an order that has no meaning. A
    /// transaction notices later changes of the values if they count; those of the members it notices by the header.
    fn members(
        &self,
        _id: CollectionId,
        _values_count: bool,
        _each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), StoreError> {
        Err(NoCollections.into())
    }

    /// Visits approximately `count` members from `cursor` on, as [`Database::scan`] does with keys.
    fn scan_members(
        &self,
        _id: CollectionId,
        _values_count: bool,
        _cursor: u64,
        _count: usize,
        _each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64, StoreError> {
        Err(NoCollections.into())
    }
}
