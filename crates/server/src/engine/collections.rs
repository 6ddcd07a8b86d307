//! [`Collections`]: the members of a database's hashes and sets, in two more keyspaces.
//!
//! `NAME.members` is semi-sorted: the key of a member starts with the number of its collection, so that the members of
//! a collection are neighbours. `NAME.owners` says under which key each collection is. A header may go without notice,
//! when it expires or `SET` overwrites it blindly: a sweep finds collections whose owner does not refer to them any
//! more, marks them as dead, and removes their members. A number is never used again, so dead is final.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use alluvium::{Db, Keyspace, KeyspaceOptions, PrefixRule, Transaction, Update};

use super::member::{self, ID_BYTES};
use crate::data;
use crate::store::stored::found;
use crate::store::{CollectionId, StoreError};

/// Numbers that are reserved together: each reservation is a write.
const NUMBERS_AT_ONCE: u64 = 1 << 16;
/// The key, among those of owners, of the first number that is not reserved.
const NEXT_NUMBER: &[u8] = b"next";
/// Maximum number of collections that wait for removal. The sweep finds the others.
const DISCARDED_MAX: usize = 1 << 16;
/// Maximum number of members that one call of [`Collections::tidy`] removes.
const MEMBERS_AT_ONCE: usize = 1024;
/// Number of owners that one call visits, and while there are certainly dead ones.
const OWNERS_AT_ONCE: usize = 100;
const OWNERS_AT_ONCE_AFTER_CLEAR: usize = 4096;

/// The first byte of an owner's record; the key follows.
const ALIVE: u8 = 0;
const DEAD: u8 = 1;

pub(super) struct Collections {
    pub(super) members: Keyspace,
    owners: Keyspace,
    /// Reserved numbers.
    numbers: Mutex<Range<u64>>,
    upkeep: Mutex<Upkeep>,
}

#[derive(Default)]
struct Upkeep {
    discarded: VecDeque<CollectionId>,
    /// Where the sweep continues.
    cursor: u64,
    /// Whether all owners of now should be visited soon: the database was cleared.
    is_urgent: bool,
}

/// The names of the keyspaces for the database in the keyspace `name`.
pub(super) fn keyspace_names(name: &str) -> [String; 2] {
    [format!("{name}.members"), format!("{name}.owners")]
}

impl Collections {
    pub(super) fn open(db: &Db, name: &str) -> Result<Self, StoreError> {
        let [members, owners] = keyspace_names(name);
        let by_collection = KeyspaceOptions::semi_sorted(PrefixRule::Length { bytes: ID_BYTES as u16 });
        Ok(Self {
            members: db.keyspace_with(&members, &by_collection)?,
            owners: db.keyspace(&owners)?,
            numbers: Mutex::default(),
            upkeep: Mutex::default(),
        })
    }

    /// Reserves a number for the members of `key`.
    pub(super) fn begin(
        &self,
        transaction: &mut Transaction,
        key: &[u8],
    ) -> Result<CollectionId, StoreError> {
        let id = self.next_number()?;
        self.own(transaction, id, key);
        Ok(id)
    }

    /// Notes that a collection is under `key`.
    pub(super) fn own(&self, transaction: &mut Transaction, id: CollectionId, key: &[u8]) {
        transaction.insert(&self.owners, owner_key(id), [&[ALIVE][..], key].concat());
    }

    fn next_number(&self) -> Result<CollectionId, StoreError> {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        if numbers.is_empty() {
            // The log keeps the order of writes: a crash that takes this one away takes those of the numbers, too.
            self.owners.update(NEXT_NUMBER, |before| {
                let start = before.and_then(|bytes| bytes.try_into().ok()).map_or(1, u64::from_le_bytes);
                *numbers = start..start + NUMBERS_AT_ONCE;
                Update::Insert(numbers.end.to_le_bytes().to_vec())
            })?;
        }
        let number = numbers.start;
        numbers.start += 1;
        Ok(CollectionId(number))
    }

    fn upkeep(&self) -> MutexGuard<'_, Upkeep> {
        self.upkeep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the members of a collection be removed, once no key refers to it.
    pub(super) fn discard(&self, id: CollectionId) {
        let mut upkeep = self.upkeep();
        if upkeep.discarded.len() < DISCARDED_MAX {
            upkeep.discarded.push_back(id);
        }
    }

    /// Removes all members. Nothing may write members meanwhile, and no key may refer to any.
    pub(super) fn clear(&self) -> Result<(), StoreError> {
        self.members.clear()?;
        // The number that comes next must stay, so owners are not cleared.
        *self.upkeep() = Upkeep { is_urgent: true, ..Upkeep::default() };
        Ok(())
    }

    /// Removes some members of dead collections; returns whether there are certainly more.
    pub(super) fn tidy(&self, db: &Db, keyspace: &Keyspace) -> Result<bool, StoreError> {
        if self.owners.approximate_len() == 0 {
            return Ok(false);
        }
        self.sweep(db, keyspace)?;
        let mut removals_left = MEMBERS_AT_ONCE;
        loop {
            let Some(id) = self.upkeep().discarded.pop_front() else { break };
            if !self.is_dead(db, keyspace, id)? {
                continue;
            }
            let removed = self.remove_members(db, id, removals_left)?;
            removals_left -= removed;
            if removals_left == 0 {
                self.upkeep().discarded.push_front(id);
                break;
            }
            self.owners.remove(owner_key(id))?;
        }
        let upkeep = self.upkeep();
        Ok(upkeep.is_urgent || !upkeep.discarded.is_empty())
    }

    /// Visits some owners, and notes the dead ones.
    fn sweep(&self, db: &Db, keyspace: &Keyspace) -> Result<(), StoreError> {
        let (cursor, is_urgent) = {
            let upkeep = self.upkeep();
            (upkeep.cursor, upkeep.is_urgent)
        };
        let count = if is_urgent { OWNERS_AT_ONCE_AFTER_CLEAR } else { OWNERS_AT_ONCE };
        let (owners, next) = self.owners.scan(cursor, count)?;
        for (key, _) in owners {
            if let Ok(bytes) = <[u8; 8]>::try_from(&key[..]) {
                let id = CollectionId(u64::from_be_bytes(bytes));
                if self.is_dead(db, keyspace, id)? {
                    self.discard(id);
                }
            }
        }
        let mut upkeep = self.upkeep();
        upkeep.cursor = next;
        upkeep.is_urgent &= next != 0;
        Ok(())
    }

    /// Whether no key refers to the collection. Marks it, so that the answer is decided at one moment: a key may be
    /// renamed meanwhile, and takes its collection along.
    fn is_dead(&self, db: &Db, keyspace: &Keyspace, id: CollectionId) -> Result<bool, StoreError> {
        db.try_transaction(|transaction| {
            let Some(owner) = transaction.get(&self.owners, owner_key(id))? else { return Ok(false) };
            let Some((&mark, key)) = owner.split_first() else { return Ok(false) };
            if mark == DEAD {
                return Ok(true);
            }
            let item = transaction.get_with_metadata(keyspace, key)?;
            let is_owned = item.is_some_and(|(value, metadata)| {
                let found = found(&value, metadata);
                data::id_of(found.kind, found.value) == Some(id)
            });
            if !is_owned {
                transaction.insert(&self.owners, owner_key(id), [&[DEAD][..], key].concat());
            }
            Ok(!is_owned)
        })
    }

    /// Removes up to `count` members; fewer if there are no more.
    fn remove_members(&self, db: &Db, id: CollectionId, count: usize) -> Result<usize, StoreError> {
        let mut batch = db.batch();
        for item in self.members.scan_prefix(member::prefix(id))?.take(count) {
            batch.remove(&self.members, item?.0);
        }
        let removed = batch.len();
        batch.commit()?;
        Ok(removed)
    }
}

/// Big-endian, so that those who list owners see them in the order of their creation.
fn owner_key(id: CollectionId) -> [u8; 8] {
    id.0.to_be_bytes()
}
