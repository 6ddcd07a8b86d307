//! `get`, `gets`, `gat`, `gats`, and the answers to lookups in a batch.

use alluvium_protocol::memcached::{Get, ItemFacts, Key, Limits, MetaGet, Parser, Progress, Reply, Request};

use super::item::{Lifetime, cas, now_s, string, ttl_s};
use super::{Context, Count, Counts, Failure};
use crate::changes::Event;
use crate::store::{Change, Database, Found, Mark};

/// How the outcome of a lookup is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A value of `get`, or with its CAS identifier of `gets`.
    Value { with_cas: bool, is_last: bool },
    /// The reply to `mg`.
    Meta,
}

/// Whether the request only looks an item up.
pub(super) fn is_plain(request: &MetaGet<'_>) -> bool {
    request.touch.is_none() && request.vivify.is_none() && request.recache.is_none()
}

impl Form {
    /// Writes that the store has failed: one line for each request.
    pub(crate) fn fail(self, text: &str, mut reply: Reply<'_>) {
        if !matches!(self, Self::Value { is_last: false, .. }) {
            reply.server_error(text);
        }
    }
}

impl Form {
    /// Writes what comes before a long value of `get`, and returns what comes after it.
    pub(crate) fn begin_long(
        self,
        key: &[u8],
        flags: u32,
        len: usize,
        counts: &mut Counts,
        mut reply: Reply<'_>,
    ) -> &'static [u8] {
        counts.add_hit(true, Count::GetHits, Count::GetMisses);
        if let Some(key) = Key::from_text(key) {
            reply.value_header(key, flags, len, None);
        }
        if matches!(self, Self::Value { is_last: true, .. }) { b"\r\nEND\r\n" } else { b"\r\n" }
    }
}

/// A key that is looked up in a batch.
pub(crate) struct Lookup<'a> {
    pub(crate) form: Form,
    pub(crate) key: &'a [u8],
    /// The line of `mg`.
    pub(crate) line: &'a [u8],
}

impl Lookup<'_> {
    /// Writes the reply, or the part of it that is about this key. Returns a claim if the client wins the item unless
    /// another one was faster: it must be decided before the reply is sent.
    pub(crate) fn answer(
        &self,
        found: Option<Found<'_>>,
        counts: &mut Counts,
        mut reply: Reply<'_>,
    ) -> Option<Claim> {
        let found = string(found);
        counts.add_hit(found.is_some(), Count::GetHits, Count::GetMisses);
        match self.form {
            Form::Value { with_cas, is_last } => {
                if let (Some(found), Some(key)) = (found, Key::from_text(self.key)) {
                    reply.value(key, found.flags, found.value, with_cas.then(|| cas(&found)));
                }
                if is_last {
                    reply.end();
                }
                None
            }
            Form::Meta => {
                let limits = Limits { line_bytes_max: usize::MAX, ..Limits::default() };
                // It was parsed before, when it was taken into the batch.
                let Progress::Complete { request: Request::MetaGet(request), .. } =
                    Parser::new(limits).parse(self.line)
                else {
                    return None;
                };
                let Some(found) = found else {
                    reply.meta_miss(&request);
                    return None;
                };
                let mut item = facts(&found, if found.expires_at_ms.is_some() { now_s() } else { 0 });
                item.wins = request.wins(&item, None);
                reply.meta_hit_header(&request, &item);
                let claim = item.wins.then(|| Claim {
                    flags_at: reply.buffered_bytes() - Claim::LINE_END.len() - Claim::WON.len(),
                    cas: item.cas,
                });
                if request.with_value {
                    reply.value_block(found.value);
                }
                claim
            }
        }
    }
}

/// A client that wins an item unless another one has won it meanwhile.
pub(crate) struct Claim {
    /// Where its flags are in the replies of the connection, as if it had won.
    flags_at: usize,
    /// The identifier of the item.
    cas: u64,
}

impl Claim {
    const LINE_END: &[u8] = b"\r\n";
    const WON: &[u8] = b" X W";
    const LOST: &[u8] = b" Z X";

    /// Notes in the store that the client has won; if it has not, corrects the reply in `output`. Whether a client has
    /// won is a hint: after a crash another one may win.
    pub(crate) fn decide(self, key: &[u8], database: &dyn Database, output: &mut [u8]) {
        let mut wins = false;
        let updated = database.update_any(key, &mut |found| {
            let found = string(found).filter(|found| cas(found) == self.cas && !found.mark.has_winner);
            wins = found.is_some();
            let Some(found) = found else { return Change::Keep };
            let mark = Mark { has_winner: true, ..found.mark };
            Lifetime::Until(found.expires_at_ms).insert(found.value.to_vec(), found.flags, mark)
        });
        if !wins || updated.is_err() {
            output[self.flags_at..][..Self::LOST.len()].copy_from_slice(Self::LOST);
        }
    }
}

/// What `mg` tells of an item. Stores do not note when an item was asked for: it counts as asked for just now.
pub(super) fn facts(found: &Found<'_>, now_s: u64) -> ItemFacts {
    let ttl_s = ttl_s(found.expires_at_ms, now_s);
    ItemFacts {
        cas: cas(found),
        client_flags: found.flags,
        value_bytes: found.value.len(),
        ttl_s,
        new_ttl_s: ttl_s,
        was_hit: true,
        idle_s: 0,
        is_new: false,
        has_winner: found.mark.has_winner,
        is_stale: found.mark.is_stale,
        wins: false,
    }
}

/// `gat` and `gats`, and lookups outside of a batch.
pub(super) fn get(request: &Get<'_>, context: &mut Context<'_>) -> Result<(), Failure> {
    let lifetime = request.touch.map(|exptime| Lifetime::of(exptime, now_s()));
    let start = context.reply.buffered_bytes();
    for key in request.keys.iter() {
        let mut is_found = false;
        let before = context.reply.buffered_bytes();
        let reply = &mut context.reply;
        let database = context.shared.store.database(super::DATABASE);
        let mut write = |found: Option<Found<'_>>| {
            reply.rewind(before);
            let found = string(found);
            is_found = found.is_some();
            if let Some(found) = found {
                reply.value(key, found.flags, found.value, request.with_cas.then(|| cas(&found)));
            }
        };
        match lifetime {
            Some(lifetime) => context.writer.update(key.text(), Event::EXPIRE, &mut |found| {
                write(found);
                if string(found).is_some() { lifetime.expire() } else { Change::Keep }
            })?,
            None => database.get_any(key.text(), &mut |found| write(Some(found)))?,
        }
        context.counts.add_hit(is_found, Count::GetHits, Count::GetMisses);
        if lifetime.is_some() {
            context.counts.add_hit(is_found, Count::TouchHits, Count::TouchMisses);
        }
        if context.reply.buffered_bytes() - start > context.shared.options.output_bytes_max {
            context.session.closing = true;
            return Err(Failure::Store("the reply exceeds the output limit of this server".into()));
        }
    }
    context.reply.end();
    Ok(())
}
