//! Copying an item to another key: what `RENAME`, `RENAMENX`, `COPY` and `MOVE` share.

use alluvium_protocol::integer;

use super::{Context, Failure};
use crate::changes::Event;
use crate::data;
use crate::store::{Attributes, Change, Database, DatabaseNumber, Kind, StoreError};

/// A key of a database.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) database: DatabaseNumber,
    pub(super) key: &'a [u8],
}

/// What stays at the source.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Stays,
    Goes,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    NoSource,
    /// There is an item at the destination already, which must not be replaced.
    Busy,
}

/// Puts a copy of an item with its expiry at another place, and removes the item if it goes, all at one moment.
pub(super) fn transfer(
    context: &mut Context<'_>,
    from: Place<'_>,
    to: Place<'_>,
    source: Source,
    replaces: bool,
) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::NoSource;
    context.databases.atomically(&mut |inside| {
        let (here, there) = (inside.database(from.database), inside.database(to.database));
        let mut item = None;
        here.get_any(from.key, &mut |found| {
            let attributes = Attributes { flags: found.flags, expires_at_ms: found.expires_at_ms };
            item = Some((found.kind, found.value.to_vec(), attributes));
        })?;
        let Some((kind, value, attributes)) = item else {
            outcome = Outcome::NoSource;
            return Ok(());
        };
        if !replaces && there.contains(to.key)? {
            outcome = Outcome::Busy;
            return Ok(());
        }
        outcome = Outcome::Done;
        remove(there, to.key)?;
        let is_renamed = source == Source::Goes && from.database == to.database;
        match (kind, data::id_of(kind, &value)) {
            (Kind::String, _) => there.insert_with(to.key, &value, attributes)?,
            (_, Some(id)) if is_renamed => {
                here.update_any(from.key, &mut |_| Change::Remove)?;
                here.move_collection(id, to.key)?;
                insert(there, to.key, kind, &value, attributes)?;
                return Ok(());
            }
            (_, Some(id)) => {
                let value = data::copy(here, &value, id, there, to.key)?;
                insert(there, to.key, kind, &value, attributes)?;
            }
            (_, None) => return Err("items of this type cannot be copied to another key".into()),
        }
        if source == Source::Goes { remove(here, from.key) } else { Ok(()) }
    })?;
    if outcome == Outcome::Done {
        let (left, arrived) = match source {
            Source::Stays => (None, Event::COPY_TO),
            Source::Goes if from.database == to.database => (Some(Event::RENAME_FROM), Event::RENAME_TO),
            Source::Goes => (Some(Event::MOVE_FROM), Event::MOVE_TO),
        };
        if let Some(event) = left {
            context.changed_in(from.database, from.key, event);
        }
        context.changed_in(to.database, to.key, arrived);
    }
    Ok(outcome)
}

/// Creates an item of any type.
fn insert(
    database: &dyn Database,
    key: &[u8],
    kind: Kind,
    value: &[u8],
    attributes: Attributes,
) -> Result<(), StoreError> {
    database.update_any(key, &mut |_| Change::InsertKind(kind, value.to_vec()))?;
    database.update_any(key, &mut |_| Change::Expire(attributes.expires_at_ms))
}

/// Removes an item of any type.
pub(super) fn remove(database: &dyn Database, key: &[u8]) -> Result<(), StoreError> {
    let mut removed = None;
    database.update_any(key, &mut |found| {
        removed = found.and_then(|found| data::id_of(found.kind, found.value));
        Change::Remove
    })?;
    match removed {
        Some(id) => database.discard_collection(id),
        None => Ok(()),
    }
}

/// The database whose number is the argument at `at`, opened.
pub(super) fn database(context: &Context<'_>, at: usize) -> Result<DatabaseNumber, Failure> {
    let number = integer::parse(&context.arguments[at]).ok_or(Failure::NOT_AN_INTEGER)?;
    let number = i32::try_from(number).map_err(|_| {
        Failure::Fixed("ERR value is out of range, value must between -2147483648 and 2147483647")
    })?;
    let number = DatabaseNumber::new(number.into()).ok_or(Failure::Fixed("ERR DB index is out of range"))?;
    context.shared.store.open(number)?;
    Ok(number)
}

pub(super) const SAME: Failure = Failure::Fixed("ERR source and destination objects are the same");
