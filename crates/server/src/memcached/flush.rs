//! `flush_all [delay]`

use std::sync::atomic::Ordering;
use std::time::Duration;

use alluvium_protocol::memcached::{Answer, Expiry};

use super::item::now_s;
use super::{Context, Count, DATABASE, Failure};
use crate::mail::Outbox;
use crate::shared::Shared;

pub(super) fn flush_all(delay: i64, context: &mut Context<'_>) -> Result<(), Failure> {
    context.counts.add(Count::Flushes);
    let now_s = now_s();
    match if delay > 0 { Expiry::of(delay, now_s) } else { Expiry::Now } {
        Expiry::At(at_s) => context.shared.memcached.flush_at_s.store(at_s, Ordering::Relaxed),
        Expiry::Now | Expiry::Never => {
            context.shared.memcached.flush_at_s.store(0, Ordering::Relaxed);
            context.writer.clear()?;
        }
    }
    context.reply.answer(Answer::Ok);
    Ok(())
}

/// Removes the items if the time has come for that. Returns how long to wait before the next call, `None` if no time is
/// set. If the store refuses, the next call tries again.
pub(crate) fn flush_if_due(shared: &Shared) -> Option<Duration> {
    let time = &shared.memcached.flush_at_s;
    let at_s = time.load(Ordering::Relaxed);
    if at_s == 0 {
        return None;
    }
    let missing_s = at_s.saturating_sub(now_s());
    if missing_s == 0 {
        // Workers commit before they tell clients what they no longer found.
        let cleared = shared
            .commits
            .write(|| shared.store.database(DATABASE).clear().and_then(|()| shared.store.commit()));
        if cleared.is_ok() {
            let mut outbox = Outbox::default();
            outbox.cleared(DATABASE);
            outbox.send(shared);
            let _ = time.compare_exchange(at_s, 0, Ordering::Relaxed, Ordering::Relaxed);
            return None;
        }
    }
    Some(Duration::from_secs(missing_s.max(1)))
}
