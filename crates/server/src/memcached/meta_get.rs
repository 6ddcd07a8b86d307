//! `mg` with flags that change the item, and `me`.

use alluvium_protocol::memcached::{DebugFacts, ItemFacts, Key, KeyBuffer, MetaGet};

use super::get::facts;
use super::item::{Lifetime, cas_of, now_s, string, ttl_s};
use super::{Context, Count, Failure};
use crate::changes::Event;
use crate::store::{Change, Mark};

/// The size class of all items, where memcached has one for each slab.
const CLASS: u32 = 1;

pub(super) fn get(request: &MetaGet<'_>, context: &mut Context<'_>) -> Result<(), Failure> {
    let now_s = now_s();
    let start = context.reply.buffered_bytes();
    let mut buffer = KeyBuffer::default();
    let mut is_hit = false;
    let new_cas = request.new_cas.unwrap_or_else(|| context.shared.memcached.tickets.next());
    let reply = &mut context.reply;
    context.writer.update(request.key.bytes(&mut buffer), Event::SET, &mut |found| {
        reply.rewind(start);
        let found = string(found);
        is_hit = found.is_some();
        let Some(found) = found else {
            let Some(exptime) = request.vivify else {
                reply.meta_miss(request);
                return Change::Keep;
            };
            let lifetime = Lifetime::of(exptime, now_s);
            let mark = Mark { cas: new_cas, has_winner: true, ..Mark::default() };
            let item = ItemFacts {
                cas: cas_of(&[], 0, mark),
                new_ttl_s: ttl_s(lifetime.expires_at_ms(), now_s),
                is_new: true,
                wins: true,
                ..ItemFacts::default()
            };
            reply.meta_hit(request, &item, &[]);
            return lifetime.insert(Vec::new(), 0, mark);
        };
        let mut item = facts(&found, now_s);
        let lifetime = request.touch.map(|exptime| Lifetime::of(exptime, now_s));
        if let Some(lifetime) = lifetime {
            item.new_ttl_s = ttl_s(lifetime.expires_at_ms(), now_s);
        }
        let recache_ttl_s =
            request.recache.and_then(|exptime| ttl_s(Lifetime::of(exptime, now_s).expires_at_ms(), now_s));
        item.wins = request.wins(&item, recache_ttl_s);
        reply.meta_hit(request, &item, if request.with_value { found.value } else { &[] });
        if item.wins {
            let mark = Mark { has_winner: true, ..found.mark };
            let lifetime = lifetime.unwrap_or(Lifetime::Until(found.expires_at_ms));
            return lifetime.insert(found.value.to_vec(), found.flags, mark);
        }
        lifetime.map_or(Change::Keep, Lifetime::expire)
    })?;
    context.counts.add_hit(is_hit, Count::GetHits, Count::GetMisses);
    if request.touch.is_some() {
        context.counts.add_hit(is_hit, Count::TouchHits, Count::TouchMisses);
    }
    Ok(())
}

/// `me`
pub(super) fn debug(key: Key<'_>, context: &mut Context<'_>) -> Result<(), Failure> {
    let mut buffer = KeyBuffer::default();
    let bytes = key.bytes(&mut buffer);
    let now_s = now_s();
    let mut item = None;
    context.database().get_any(bytes, &mut |found| {
        item = string(Some(found)).map(|found| {
            let facts = facts(&found, now_s);
            DebugFacts {
                ttl_s: facts.ttl_s,
                idle_s: facts.idle_s,
                cas: facts.cas,
                was_hit: facts.was_hit,
                class: CLASS,
                bytes: (bytes.len() + found.value.len()) as u64,
            }
        });
    })?;
    match item {
        Some(item) => context.reply.meta_debug(key, &item),
        None => context.reply.meta_debug_miss(),
    }
    Ok(())
}
