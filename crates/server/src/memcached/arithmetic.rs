//! `incr`, `decr`, `ma`

use alluvium_protocol::integer;
use alluvium_protocol::memcached::{
    Answer, CountFacts, Direction, Error, Key, KeyBuffer, MetaArithmetic, Outcome, write_count,
};

use super::item::{Lifetime, cas, cas_of, now_s, string, ttl_s};
use super::{Context, Count, Failure};
use crate::changes::Event;
use crate::store::{Change, Found, Mark};

/// The counts of hits and misses.
fn counts(direction: Direction) -> (Count, Count) {
    match direction {
        Direction::Increment => (Count::IncrementHits, Count::IncrementMisses),
        Direction::Decrement => (Count::DecrementHits, Count::DecrementMisses),
    }
}

/// The mark of an item that gets a number as its value. As in memcached, it stays where the number is written in place.
fn mark_of_count(found: &Found<'_>, value_bytes: usize, cas: u64) -> Mark {
    if value_bytes == found.value.len() {
        Mark { cas, ..found.mark }
    } else {
        Mark { cas, ..Mark::default() }
    }
}

pub(super) fn count(
    key: Key<'_>,
    direction: Direction,
    delta: u64,
    context: &mut Context<'_>,
) -> Result<(), Failure> {
    let mut outcome = None;
    context.writer.update(key.text(), Event::INCRBY, &mut |found| {
        outcome = None;
        let Some(found) = string(found) else { return Change::Keep };
        let Some(number) = direction.apply(found.value, delta) else {
            outcome = Some(Err(Error::NonNumeric));
            return Change::Keep;
        };
        outcome = Some(Ok(number));
        let mut value = Vec::with_capacity(found.value.len().max(integer::TEXT_BYTES_MAX));
        write_count(number, found.value.len(), &mut value);
        let mark = mark_of_count(&found, value.len(), 0);
        Lifetime::Until(found.expires_at_ms).insert(value, found.flags, mark)
    })?;
    let (hits, misses) = counts(direction);
    context.counts.add_hit(outcome.is_some(), hits, misses);
    match outcome {
        None => context.reply.answer(Answer::NotFound),
        Some(Ok(number)) => context.reply.number(number),
        Some(Err(error)) => return Err(Failure::Line(error)),
    }
    Ok(())
}

pub(super) fn meta_count(request: &MetaArithmetic<'_>, context: &mut Context<'_>) -> Result<(), Failure> {
    let now_s = now_s();
    let mark = Mark { cas: request.new_cas.unwrap_or(0), ..Mark::default() };
    let mut outcome = Ok(None);
    let mut buffer = KeyBuffer::default();
    context.writer.update(request.key.bytes(&mut buffer), Event::INCRBY, &mut |found| {
        let Some(found) = string(found) else {
            let Some(exptime) = request.vivify else {
                outcome = Ok(None);
                return Change::Keep;
            };
            let lifetime = Lifetime::of(exptime, now_s);
            let mut value = Vec::new();
            integer::write_unsigned(request.initial, &mut value);
            outcome = Ok(Some(CountFacts {
                number: request.initial,
                cas: cas_of(&value, 0, mark),
                ttl_s: None,
                new_ttl_s: ttl_s(lifetime.expires_at_ms(), now_s),
                is_new: true,
            }));
            return lifetime.insert(value, 0, mark);
        };
        if request.compare.is_some_and(|wanted| wanted != cas(&found)) {
            outcome = Err(None);
            return Change::Keep;
        }
        let Some(number) = request.direction.apply(found.value, request.delta) else {
            outcome = Err(Some(Error::NonNumeric));
            return Change::Keep;
        };
        let mut value = Vec::with_capacity(found.value.len().max(integer::TEXT_BYTES_MAX));
        write_count(number, found.value.len(), &mut value);
        let mark = mark_of_count(&found, value.len(), mark.cas);
        let lifetime = match request.touch {
            Some(exptime) => Lifetime::of(exptime, now_s),
            None => Lifetime::Until(found.expires_at_ms),
        };
        outcome = Ok(Some(CountFacts {
            number,
            cas: cas_of(&value, found.flags, mark),
            ttl_s: ttl_s(found.expires_at_ms, now_s),
            new_ttl_s: ttl_s(lifetime.expires_at_ms(), now_s),
            is_new: false,
        }));
        lifetime.insert(value, found.flags, mark)
    })?;
    let (hits, misses) = counts(request.direction);
    let is_hit = matches!(&outcome, Ok(Some(facts)) if !facts.is_new);
    context.counts.add_hit(is_hit, hits, misses);
    match outcome {
        Ok(Some(facts)) => context.reply.meta_counted(request, &facts),
        Ok(None) => context.reply.meta_not_counted(request, Outcome::NotFound),
        Err(None) => context.reply.meta_not_counted(request, Outcome::Exists),
        Err(Some(error)) => return Err(Failure::Line(error)),
    }
    Ok(())
}
