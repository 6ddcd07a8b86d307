//! `touch`

use alluvium_protocol::memcached::{Answer, Key};

use super::item::{Lifetime, now_s, string};
use super::{Context, Count, Failure};
use crate::changes::Event;
use crate::store::Change;

pub(super) fn touch(key: Key<'_>, exptime: i64, context: &mut Context<'_>) -> Result<(), Failure> {
    let lifetime = Lifetime::of(exptime, now_s());
    let mut is_found = false;
    context.writer.update(key.text(), Event::EXPIRE, &mut |found| {
        is_found = string(found).is_some();
        if is_found { lifetime.expire() } else { Change::Keep }
    })?;
    context.counts.add_hit(is_found, Count::TouchHits, Count::TouchMisses);
    context.reply.answer(if is_found { Answer::Touched } else { Answer::NotFound });
    Ok(())
}
