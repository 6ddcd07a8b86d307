//! `delete`, `md`

use alluvium_protocol::memcached::{Answer, Key, KeyBuffer, MetaDelete, Outcome};

use super::item::{Lifetime, cas, now_s, string};
use super::{Context, Count, Failure};
use crate::changes::Event;
use crate::store::{Change, Mark};

pub(super) fn delete(key: Key<'_>, context: &mut Context<'_>) -> Result<(), Failure> {
    let mut is_found = false;
    context.writer.update(key.text(), Event::DEL, &mut |found| {
        is_found = string(found).is_some();
        if is_found { Change::Remove } else { Change::Keep }
    })?;
    context.counts.add_hit(is_found, Count::DeleteHits, Count::DeleteMisses);
    context.reply.answer(if is_found { Answer::Deleted } else { Answer::NotFound });
    Ok(())
}

pub(super) fn meta_delete(request: &MetaDelete<'_>, context: &mut Context<'_>) -> Result<(), Failure> {
    let mut outcome = Outcome::NotFound;
    let mut buffer = KeyBuffer::default();
    let (now_s, ticket) = (now_s(), context.shared.memcached.tickets.next());
    context.writer.update(request.key.bytes(&mut buffer), Event::SET, &mut |found| {
        let Some(found) = string(found) else {
            outcome = Outcome::NotFound;
            return Change::Keep;
        };
        if request.compare.is_some_and(|wanted| wanted != 0 && wanted != cas(&found)) {
            outcome = Outcome::Exists;
            return Change::Keep;
        }
        outcome = Outcome::Done;
        if !request.invalidate && !request.remove_value {
            return Change::Remove;
        }
        let (value, flags) =
            if request.remove_value { (&[][..], request.client_flags) } else { (found.value, found.flags) };
        let mark = Mark {
            cas: request.new_cas.unwrap_or(if request.invalidate { ticket } else { 0 }),
            is_stale: request.invalidate || found.mark.is_stale,
            has_winner: false,
        };
        let lifetime = match request.exptime {
            Some(exptime) => Lifetime::of(exptime, now_s),
            None => Lifetime::Until(found.expires_at_ms),
        };
        lifetime.insert(value.to_vec(), flags, mark)
    })?;
    context.counts.add_hit(outcome == Outcome::Done, Count::DeleteHits, Count::DeleteMisses);
    context.reply.meta_deleted(request, outcome);
    Ok(())
}
