//! What the commands of hashes and sets share.

use alluvium_protocol::integer;

use super::mget::MOMENT_KEYS_MAX;
use super::{Context, Failure};
use crate::changes::Event;
use crate::data::{self, Collection};
use crate::store::{Kind, StoreError};
use crate::{glob, random};

/// A member with its value.
pub(super) type Member = (Box<[u8]>, Box<[u8]>);

/// Members with their values.
pub(super) type Members = Vec<Member>;

/// Number of members up to which a random one is picked among all of them.
const LISTED_MAX: u64 = 512;
/// Maximum number of members that are picked with repetitions.
const PICKED_MAX: i64 = 1 << 20;
/// The cursors of members are below this.
const CURSOR_END: u64 = 1 << 24;
const COUNT_DEFAULT: usize = 10;
/// Maximum number of members visited in one call of `HSCAN` and `SSCAN`: other clients wait.
const COUNT_MAX: usize = 4096;

/// Changes the collection under `key` in a transaction.
pub(super) fn write(
    context: &Context<'_>,
    key: &[u8],
    kind: Kind,
    body: &mut dyn FnMut(&mut Collection<'_>) -> Result<(), StoreError>,
) -> Result<(), Failure> {
    Ok(data::write(context.databases, context.session.database, key, kind, body)?)
}

/// Reads the collection under `key`; `body` gets `None` if there is none, and may be called several times.
pub(super) fn read(
    context: &Context<'_>,
    key: &[u8],
    kind: Kind,
    body: &mut dyn FnMut(Option<&Collection<'_>>) -> Result<(), StoreError>,
) -> Result<(), Failure> {
    Ok(data::read(context.store(), key, kind, body)?)
}

/// Notes that members were removed, and the key with the last one.
pub(super) fn removed(context: &mut Context<'_>, key_at: usize, event: Event, is_empty: bool) {
    context.changed(key_at, event);
    if is_empty {
        context.changed(key_at, Event::DEL);
    }
}

/// Like [`read`], for several members: they are those of one moment.
pub(super) fn read_together(
    context: &Context<'_>,
    key: &[u8],
    kind: Kind,
    members: usize,
    body: &mut dyn FnMut(Option<&Collection<'_>>) -> Result<(), StoreError>,
) -> Result<(), Failure> {
    if members == 1 || members > MOMENT_KEYS_MAX {
        return read(context, key, kind, body);
    }
    let number = context.session.database;
    Ok(context.databases.at_one_moment(&mut |inside| data::read(inside.database(number), key, kind, body))?)
}

/// All members of the collection under `key`.
///
/// # Errors
/// [`Failure::ReplyTooLarge`] if they take more than a reply may.
pub(super) fn collect(context: &Context<'_>, key: &[u8], kind: Kind) -> Result<Members, Failure> {
    let bytes_max = context.shared.options.output_bytes_max;
    let (mut members, mut is_too_large) = (Members::new(), false);
    read(context, key, kind, &mut |collection| {
        members.clear();
        let Some(collection) = collection else { return Ok(()) };
        let mut bytes = 0;
        collection.for_each(&mut |member, value| {
            bytes += member.len() + value.len();
            if bytes <= bytes_max {
                members.push((member.into(), value.into()));
            }
        })?;
        is_too_large = bytes > bytes_max;
        Ok(())
    })?;
    if is_too_large { Err(Failure::ReplyTooLarge) } else { Ok(members) }
}

/// `HSCAN` and `SSCAN`.
pub(super) fn scan(context: &mut Context<'_>, kind: Kind) -> Result<(), Failure> {
    let cursor =
        integer::parse_unsigned(&context.arguments[2]).ok_or(Failure::Fixed("ERR invalid cursor"))?;
    let (mut pattern, mut count) = (None, COUNT_DEFAULT);
    for at in (3..context.arguments.len()).step_by(2) {
        let value = context.arguments.get(at + 1).ok_or(Failure::SYNTAX)?;
        if context.is_word(at, "match") {
            pattern = Some(value);
        } else if context.is_word(at, "count") {
            let asked = context.integer(at + 1)?;
            if asked < 1 {
                return Err(Failure::SYNTAX);
            }
            count = usize::try_from(asked).unwrap_or(COUNT_MAX).min(COUNT_MAX);
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    let (mut members, mut next) = (Members::new(), 0);
    read(context, &context.arguments[1], kind, &mut |collection| {
        members.clear();
        next = match collection {
            Some(collection) => collection.scan(cursor, count, &mut |member, value| {
                if pattern.is_none_or(|pattern| glob::matches(pattern, member, false)) {
                    members.push((member.into(), value.into()));
                }
            })?,
            None => 0,
        };
        Ok(())
    })?;
    context.reply.array(2);
    context.reply.bulk_unsigned(next);
    let parts = if kind == Kind::Hash { 2 } else { 1 };
    context.reply.array(parts * members.len());
    for (member, value) in &members {
        context.reply.bulk(member);
        if kind == Kind::Hash {
            context.reply.bulk(value);
        }
    }
    Ok(())
}

/// The second argument of `SRANDMEMBER` and `HRANDFIELD`.
pub(super) fn count(context: &Context<'_>) -> Result<i64, Failure> {
    match context.integer(2)? {
        i64::MIN => Err(Failure::Fixed(
            "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        )),
        count => Ok(count),
    }
}

/// Picks members of the collection under `key`: one for `None`, different ones for a positive count, any for a
/// negative one.
pub(super) fn pick(
    context: &Context<'_>,
    key: &[u8],
    kind: Kind,
    count: Option<i64>,
) -> Result<Members, Failure> {
    let asked = usize::try_from(count.unwrap_or(1).unsigned_abs()).unwrap_or(usize::MAX);
    if count.is_some_and(|count| count < -PICKED_MAX) {
        return Err(Failure::Fixed("ERR value is out of range"));
    }
    let mut picked = Members::new();
    read(context, key, kind, &mut |collection| {
        picked = match (collection, count) {
            (None, _) => Members::new(),
            (Some(collection), Some(..0)) => pick_any(collection, asked)?,
            (Some(collection), _) => pick_different(collection, asked)?,
        };
        Ok(())
    })?;
    Ok(picked)
}

/// `count` different members, or all if there are fewer. All are equally likely to be picked, except that in a large
/// collection the chance of a member depends on the distance of its hash from that before it.
pub(super) fn pick_different(collection: &Collection<'_>, count: usize) -> Result<Members, StoreError> {
    let count = count.min(usize::try_from(collection.len()).unwrap_or(usize::MAX));
    let mut picked = Members::new();
    if collection.len() <= LISTED_MAX || count as u64 > collection.len() / 8 {
        collection.for_each(&mut |member, value| picked.push((member.into(), value.into())))?;
        for position in 0..count.min(picked.len()) {
            let other = position + random::below((picked.len() - position) as u64) as usize;
            picked.swap(position, other);
        }
        picked.truncate(count);
        return Ok(picked);
    }
    let mut known = std::collections::BTreeSet::new();
    while picked.len() < count {
        if let Some((member, value)) = pick_by_cursor(collection)?
            && known.insert(member.clone())
        {
            picked.push((member, value));
        }
    }
    Ok(picked)
}

/// `count` members, each picked among all.
pub(super) fn pick_any(collection: &Collection<'_>, count: usize) -> Result<Members, StoreError> {
    let mut picked = Members::new();
    if collection.len() > LISTED_MAX {
        while picked.len() < count {
            picked.extend(pick_by_cursor(collection)?);
        }
        return Ok(picked);
    }
    let mut all = Members::new();
    collection.for_each(&mut |member, value| all.push((member.into(), value.into())))?;
    if !all.is_empty() {
        picked.extend((0..count).map(|_| all[random::below(all.len() as u64) as usize].clone()));
    }
    Ok(picked)
}

/// The member behind a random place of the hash space.
fn pick_by_cursor(collection: &Collection<'_>) -> Result<Option<Member>, StoreError> {
    let mut cursor = random::below(CURSOR_END);
    loop {
        let mut found = Members::new();
        let next =
            collection.scan(cursor, 1, &mut |member, value| found.push((member.into(), value.into())))?;
        if !found.is_empty() {
            let at = random::below(found.len() as u64) as usize;
            return Ok(Some(found.swap_remove(at)));
        }
        if cursor == 0 && next == 0 {
            return Ok(None);
        }
        cursor = next;
    }
}
