//! `set`, `add`, `replace`, `append`, `prepend`, `cas`, `ms`

use alluvium_protocol::memcached::{Answer, KeyBuffer, MetaStore, Outcome, Store, StoreMode};

use super::item::{Lifetime, cas, cas_of, is_newer, now_s, string};
use super::{Context, Count, Failure};
use crate::changes::Event;
use crate::store::{Attributes, Change, Found, Mark, StoreError};

/// What `ms` can ask for and the classic commands cannot.
#[derive(Default)]
struct Extra {
    stale_if_newer: bool,
    vivify: Option<i64>,
    new_cas: Option<u64>,
}

/// What was stored, if anything was.
struct Stored {
    outcome: Outcome,
    cas: u64,
    value_bytes: usize,
}

pub(super) fn store(store: &Store<'_>, context: &mut Context<'_>) -> Result<(), Failure> {
    let outcome = write(store, &Extra::default(), context)?.outcome;
    context.reply.answer(match outcome {
        Outcome::Done => Answer::Stored,
        Outcome::NotStored => Answer::NotStored,
        Outcome::Exists => Answer::Exists,
        Outcome::NotFound => Answer::NotFound,
    });
    Ok(())
}

pub(super) fn meta_store(request: &MetaStore<'_>, context: &mut Context<'_>) -> Result<(), Failure> {
    let MetaStore { stale_if_newer, vivify, new_cas, .. } = *request;
    let stored = write(&request.store, &Extra { stale_if_newer, vivify, new_cas }, context)?;
    context.reply.meta_stored(request, stored.outcome, stored.cas, stored.value_bytes);
    Ok(())
}

fn write(store: &Store<'_>, extra: &Extra, context: &mut Context<'_>) -> Result<Stored, StoreError> {
    context.counts.add(Count::Sets);
    let mut buffer = KeyBuffer::default();
    let key = store.key.bytes(&mut buffer);
    let new = New {
        store,
        extra,
        lifetime: Lifetime::of(store.exptime, now_s()),
        mark: Mark { cas: extra.new_cas.unwrap_or(0), ..Mark::default() },
        value_bytes_max: context.shared.options.memcached_limits.value_bytes_max,
    };
    // What does not depend on the old item is written without reading it.
    if let Lifetime::Until(expires_at_ms) = new.lifetime
        && store.is_unconditional()
        && extra.new_cas.is_none()
    {
        let attributes = Attributes { flags: store.client_flags, expires_at_ms };
        context.writer.insert(key, store.value, attributes)?;
        return Ok(new.stored(store.value, store.client_flags, new.mark));
    }
    let mut stored = new.refused(Outcome::NotStored);
    let event = match store.mode {
        StoreMode::Append | StoreMode::Prepend => Event::APPEND,
        StoreMode::Set | StoreMode::Add | StoreMode::Replace => Event::SET,
    };
    context.writer.update(key, event, &mut |found| {
        let change;
        (change, stored) = match string(found) {
            Some(found) => new.over(&found),
            None => new.alone(),
        };
        change
    })?;
    if store.compare.is_some() {
        match stored.outcome {
            Outcome::Done => context.counts.add(Count::CasHits),
            Outcome::NotFound => context.counts.add(Count::CasMisses),
            Outcome::Exists => context.counts.add(Count::CasDiffers),
            Outcome::NotStored => {}
        }
    }
    Ok(stored)
}

/// What is to be stored.
struct New<'a> {
    store: &'a Store<'a>,
    extra: &'a Extra,
    lifetime: Lifetime,
    mark: Mark,
    value_bytes_max: usize,
}

impl New<'_> {
    /// Where there is no item.
    fn alone(&self) -> (Change, Stored) {
        let Store { value, client_flags, .. } = *self.store;
        let lifetime = match self.store.mode {
            StoreMode::Set if self.store.compare.is_some() => return self.keep(Outcome::NotFound),
            StoreMode::Set | StoreMode::Add => self.lifetime,
            StoreMode::Replace => return self.keep(Outcome::NotStored),
            StoreMode::Append | StoreMode::Prepend => match self.extra.vivify {
                Some(exptime) => Lifetime::of(exptime, now_s()),
                None => return self.keep(Outcome::NotStored),
            },
        };
        self.insert(value.to_vec(), client_flags, lifetime, self.mark)
    }

    /// Over an item.
    fn over(&self, found: &Found<'_>) -> (Change, Stored) {
        let Store { value, client_flags, .. } = *self.store;
        let kept = Lifetime::Until(found.expires_at_ms);
        if let Some(wanted) = self.store.compare
            && wanted != cas(found)
        {
            if !self.extra.stale_if_newer || !is_newer(found, wanted) {
                return self.keep(Outcome::Exists);
            }
            let mark = Mark { is_stale: true, has_winner: found.mark.has_winner, ..self.mark };
            return self.insert(value.to_vec(), client_flags, kept, mark);
        }
        let parts = match self.store.mode {
            StoreMode::Set | StoreMode::Replace => {
                return self.insert(value.to_vec(), client_flags, self.lifetime, self.mark);
            }
            StoreMode::Add => return self.keep(Outcome::NotStored),
            StoreMode::Append => [found.value, value],
            StoreMode::Prepend => [value, found.value],
        };
        if found.value.len() + value.len() > self.value_bytes_max {
            return self.keep(Outcome::NotStored);
        }
        self.insert(parts.concat(), found.flags, kept, self.mark)
    }

    fn keep(&self, outcome: Outcome) -> (Change, Stored) {
        (Change::Keep, self.refused(outcome))
    }

    fn insert(&self, value: Vec<u8>, flags: u32, lifetime: Lifetime, mark: Mark) -> (Change, Stored) {
        let stored = self.stored(&value, flags, mark);
        (lifetime.insert(value, flags, mark), stored)
    }

    fn stored(&self, value: &[u8], flags: u32, mark: Mark) -> Stored {
        Stored { outcome: Outcome::Done, cas: cas_of(value, flags, mark), value_bytes: value.len() }
    }

    fn refused(&self, outcome: Outcome) -> Stored {
        Stored { outcome, cas: 0, value_bytes: self.store.value.len() }
    }
}
