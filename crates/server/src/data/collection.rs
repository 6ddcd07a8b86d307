//! [`Collection`]: the members of one key.

use super::header::Header;
use crate::store::{Change, CollectionId, Database, DatabaseNumber, Databases, Kind, StoreError, WrongType};

/// The members under a key, each with a value, which is empty in a set.
pub(crate) struct Collection<'a> {
    database: &'a dyn Database,
    key: &'a [u8],
    kind: Kind,
    header: Option<Header>,
    /// Whether a member came or went. The header is then written, even if there are as many as before: other
    /// transactions that have read the members notice it.
    has_changed: bool,
    /// Whether a member got another value. The header is then written if a client watches a key: it may be this one.
    has_other_values: bool,
}

/// Calls `body` with the collection under `key`, which may be empty, within a transaction, and stores what it has
/// changed. A collection that has become empty is removed.
///
/// # Errors
/// [`WrongType`] if the key holds another type.
pub(crate) fn write(
    databases: &dyn Databases,
    number: DatabaseNumber,
    key: &[u8],
    kind: Kind,
    body: &mut dyn FnMut(&mut Collection<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    databases.atomically(&mut |inside| {
        let mut collection = Collection::open(inside.database(number), key, kind)?;
        body(&mut collection)?;
        collection.store()
    })
}

/// Calls `body` with the collection under `key`, or `None` if there is none. It is called again if the collection was
/// replaced meanwhile.
///
/// # Errors
/// [`WrongType`] if the key holds another type.
pub(crate) fn read(
    database: &dyn Database,
    key: &[u8],
    kind: Kind,
    body: &mut dyn FnMut(Option<&Collection<'_>>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    loop {
        let collection = Collection::open(database, key, kind)?;
        let Some(header) = collection.header else { return body(None) };
        body(Some(&collection))?;
        // Members are removed only after their header: while it is there, nothing was missing.
        if Collection::open(database, key, kind)?.header.is_some_and(|now| now.id == header.id) {
            return Ok(());
        }
    }
}

impl<'a> Collection<'a> {
    fn open(database: &'a dyn Database, key: &'a [u8], kind: Kind) -> Result<Self, StoreError> {
        let mut header = Ok(None);
        database.get_any(key, &mut |found| {
            header = match found.kind == kind {
                true => Header::decode(found).map(Some),
                false => Err(WrongType.into()),
            };
        })?;
        Ok(Self { database, key, kind, header: header?, has_changed: false, has_other_values: false })
    }

    /// Number of members.
    pub(crate) fn len(&self) -> u64 {
        self.header.map_or(0, |header| header.len)
    }

    /// The value of a member.
    pub(crate) fn get(&self, member: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        match self.header {
            Some(header) => self.database.member(header.id, member),
            None => Ok(None),
        }
    }

    /// Calls `each` with each member and its value, in an order that has no meaning.
    pub(crate) fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        match self.header {
            Some(header) => self.database.members(header.id, self.kind == Kind::Hash, each),
            None => Ok(()),
        }
    }

    /// Visits approximately `count` members from `cursor` on and returns the next cursor; 0 is the start, and the end.
    pub(crate) fn scan(
        &self,
        cursor: u64,
        count: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64, StoreError> {
        match self.header {
            Some(header) => {
                self.database.scan_members(header.id, self.kind == Kind::Hash, cursor, count, each)
            }
            None => Ok(0),
        }
    }

    /// Sets the value of a member; returns whether the member is new.
    pub(crate) fn insert(&mut self, member: &[u8], value: &[u8]) -> Result<bool, StoreError> {
        let mut header = match self.header {
            Some(header) => header,
            None => Header { id: self.database.new_collection(self.key)?, len: 0 },
        };
        let before = if header.len == 0 { None } else { self.database.member(header.id, member)? };
        if before.as_deref() != Some(value) {
            self.database.insert_member(header.id, member, value)?;
        }
        let is_new = before.is_none();
        self.has_other_values |= before.is_some_and(|before| before != value);
        header.len += u64::from(is_new);
        self.has_changed |= is_new;
        self.header = Some(header);
        Ok(is_new)
    }

    /// Removes a member; returns whether there was one.
    pub(crate) fn remove(&mut self, member: &[u8]) -> Result<bool, StoreError> {
        let Some(mut header) = self.header else { return Ok(false) };
        if self.database.member(header.id, member)?.is_none() {
            return Ok(false);
        }
        self.database.remove_member(header.id, member)?;
        header.len = header.len.saturating_sub(1);
        self.has_changed = true;
        self.header = Some(header);
        Ok(true)
    }

    /// Writes the header if others have to notice the change.
    fn store(self) -> Result<(), StoreError> {
        let Self { database, key, kind, header, has_changed, has_other_values } = self;
        let is_noticed = has_changed || has_other_values && database.has_watches();
        let Some(header) = header.filter(|_| is_noticed) else { return Ok(()) };
        let is_empty = header.len == 0;
        database.update_any(key, &mut |_| match is_empty {
            true => Change::Remove,
            false => Change::InsertKind(kind, header.encode()),
        })?;
        if is_empty { database.discard_collection(header.id) } else { Ok(()) }
    }
}

/// The collection of an item that is one.
pub(crate) fn id_of(kind: Kind, value: &[u8]) -> Option<CollectionId> {
    match kind {
        Kind::Hash | Kind::Set => value.first_chunk::<8>().map(|id| CollectionId(u64::from_le_bytes(*id))),
        Kind::String | Kind::Unknown => None,
    }
}

/// Creates a collection of these members, all different and at least one, under a key that has no item. Only within a
/// transaction.
pub(crate) fn create<'a>(
    database: &dyn Database,
    key: &[u8],
    kind: Kind,
    members: impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])>,
    expires_at_ms: Option<u64>,
) -> Result<(), StoreError> {
    let header = Header { id: database.new_collection(key)?, len: members.len() as u64 };
    for (member, value) in members {
        database.insert_member(header.id, member, value)?;
    }
    database.update_any(key, &mut |_| Change::InsertKind(kind, header.encode()))?;
    database.update_any(key, &mut |_| Change::Expire(expires_at_ms))
}

/// Copies the members of a collection into a new one of `there`, under `key`, and returns the value of that item. Only
/// within a transaction.
pub(crate) fn copy(
    here: &dyn Database,
    value: &[u8],
    id: CollectionId,
    there: &dyn Database,
    key: &[u8],
) -> Result<Vec<u8>, StoreError> {
    let mut members = Vec::new();
    here.members(id, true, &mut |member, value| members.push((member.to_vec(), value.to_vec())))?;
    let new = there.new_collection(key)?;
    for (member, value) in &members {
        there.insert_member(new, member, value)?;
    }
    let (_, len) = value.split_first_chunk::<8>().ok_or("the header of a collection is too short")?;
    Ok([&new.0.to_le_bytes(), len].concat())
}
