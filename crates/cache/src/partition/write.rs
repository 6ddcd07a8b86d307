//! Operations of a partition's writer on one key.

use std::borrow::Cow;
use std::time::Duration;

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::error::TooLarge;
use crate::eviction::{ACCESSES_MAX, Eviction};
use crate::index::Entry;
use crate::item::{Header, ItemView, Metadata, write_item};

use super::body::{Body, Found, MAIN, PROBATION};
use super::inline::Ahead;
use super::{Counters, Partition};

/// The content that a write gives an item.
#[derive(Clone, Debug)]
pub(crate) struct Write<'v> {
    pub value: Cow<'v, [u8]>,
    pub metadata: Metadata,
}

/// What an update does with an item.
#[derive(Clone, Debug)]
pub(crate) enum Change<'v> {
    /// Changes nothing.
    Keep,
    /// Removes the item.
    Remove,
    /// Gives it this content.
    Put(Write<'v>),
}

impl<A: Access> Partition<A> {
    /// Gives `key`, whose hash is `hash`, a value.
    ///
    /// # Errors
    /// [`TooLarge`]; the key keeps its former item.
    #[inline(always)]
    pub fn set(
        &self,
        hash: KeyHash,
        key: &[u8],
        ahead: Ahead,
        value: &[u8],
        metadata: Metadata,
    ) -> Result<(), TooLarge> {
        let is_plain = metadata == Metadata::default();
        if is_plain
            && (self.overwrite_inline(hash, key, ahead, value)
                || self.overwrite(hash, key, ahead.ways(), value))
        {
            return Ok(());
        }
        self.set_any(hash, key, value, metadata)
    }

    #[inline(never)]
    fn set_any(&self, hash: KeyHash, key: &[u8], value: &[u8], metadata: Metadata) -> Result<(), TooLarge> {
        let _writing = self.enter();
        let body = self.begin_insert(hash);
        match body.find_inline(hash, key) {
            Some(found) => self.put_over_inline(body, hash, &found, key, value, metadata),
            None => self.put(body, hash, body.find(body.index.place(hash), key), key, value, metadata),
        }
    }

    /// Removes the item of `key`; returns whether there was one.
    pub fn remove(&self, hash: KeyHash, key: &[u8]) -> bool {
        let _writing = self.enter();
        let body = self.begin_write();
        if let Some(found) = body.find_inline(hash, key) {
            self.empty(&found, &self.counters.removed);
            return true;
        }
        match body.find(body.index.place(hash), key) {
            Some(found) => {
                let was_there = !self.is_expired(found.stored().metadata());
                let reason = if was_there { &self.counters.removed } else { &self.counters.expired };
                self.unlink(found.bucket, found.way, reason);
                was_there
            }
            None => false,
        }
    }

    /// Decides what to do with the item of `key` based on its content, with no other write in between.
    ///
    /// # Errors
    /// [`TooLarge`]; the key keeps its former item.
    pub fn update<'v>(
        &self,
        hash: KeyHash,
        key: &[u8],
        decide: impl FnOnce(Option<(ItemView<'_>, Metadata)>) -> Change<'v>,
    ) -> Result<(), TooLarge> {
        let _writing = self.enter();
        let body = self.begin_insert(hash);
        if let Some(found) = body.find_inline(hash, key) {
            let mut value = vec![0; found.cell.value_len()];
            found.cell.copy_value(&mut value);
            match decide(Some((self.view(&value, Metadata::default()), Metadata::default()))) {
                Change::Keep => {}
                Change::Remove => self.empty(&found, &self.counters.removed),
                Change::Put(write) => {
                    return self.put_over_inline(body, hash, &found, key, &write.value, write.metadata);
                }
            }
            return Ok(());
        }
        let mut found = body.find(body.index.place(hash), key);
        if let Some(expired) = found.filter(|found| self.is_expired(found.stored().metadata())) {
            self.unlink(expired.bucket, expired.way, &self.counters.expired);
            found = None;
        }
        let change = match found {
            None => decide(None),
            Some(found) => {
                let (stored, metadata) = (found.stored(), found.stored().metadata());
                let mut value = vec![0; stored.value_len()];
                stored.copy_value(&mut value);
                decide(Some((self.view(&value, metadata), metadata)))
            }
        };
        match (change, found) {
            (Change::Keep, _) | (Change::Remove, None) => Ok(()),
            (Change::Remove, Some(found)) => {
                self.unlink(found.bucket, found.way, &self.counters.removed);
                Ok(())
            }
            (Change::Put(write), found) => self.put(body, hash, found, key, &write.value, write.metadata),
        }
    }

    /// Removes all items; the memory stays.
    pub fn clear(&self) {
        let _writing = self.enter();
        let body = self.begin_write();
        self.unlink_all(body);
        self.empty_all(body);
        body.logs.iter().for_each(crate::log::CircularLog::clear);
    }

    /// The first step of every write: upkeep that reads or the passing of time made due.
    #[inline(always)]
    pub(super) fn begin_write(&self) -> &Body {
        let body = self.body.get();
        self.work_off_promotions(body);
        self.sweep_some(body);
        body
    }

    /// An item as a callback sees it.
    #[inline(always)]
    pub(crate) fn view<'a>(&self, value: &'a [u8], metadata: Metadata) -> ItemView<'a> {
        let time_to_live = (metadata.expires_at_ms != 0)
            .then(|| Duration::from_millis(metadata.expires_at_ms.saturating_sub(self.common.now_ms())));
        ItemView { value, flags: metadata.flags, time_to_live }
    }

    /// Stores the item of a key that has none, or replaces `found` in the logs: in the key's inline bucket, if the key
    /// has no item yet and there is a cell, otherwise in the logs.
    #[inline(always)]
    pub(super) fn put(
        &self,
        body: &Body,
        hash: KeyHash,
        found: Option<Found<'_>>,
        key: &[u8],
        value: &[u8],
        metadata: Metadata,
    ) -> Result<(), TooLarge> {
        if found.is_none() && metadata == Metadata::default() && self.put_inline(body, hash, key, value) {
            return Ok(());
        }
        self.put_in_log(body, hash, found, key, value, metadata)
    }

    /// The same, in the logs.
    #[inline(always)]
    pub(super) fn put_in_log(
        &self,
        body: &Body,
        hash: KeyHash,
        found: Option<Found<'_>>,
        key: &[u8],
        value: &[u8],
        metadata: Metadata,
    ) -> Result<(), TooLarge> {
        if metadata.expires_at_ms != 0 {
            self.sweeper.note_expiry();
        }
        let (has_expiry, has_flags) = (metadata.expires_at_ms != 0, metadata.flags != 0);
        let header = Header::new(key.len(), value.len(), has_expiry, has_flags)
            .filter(|header| header.words() <= body.logs[MAIN].item_words_max());
        let Some(header) = header else {
            Counters::count(&self.counters.too_large);
            return Err(TooLarge { item_bytes_max: body.logs[MAIN].item_words_max() * 8 });
        };
        if let Some(found) = found
            && self.update_in_place(&found, header, key, value, metadata)
        {
            return Ok(());
        }
        let number = self.log_for(body, hash, header, found.as_ref());
        let (log, place) = (&body.logs[number], body.index.place(hash));
        self.make_room(body, number, header.words());
        let position = log.reserve(header.words());
        write_item(log.ring(), log.layout().unit(position), header, metadata, key, value);
        let before = found.and_then(|found| self.find_again(&found, key, place)).map(|found| {
            let count = match self.common.eviction {
                Eviction::S3Fifo => (found.bucket.counts().get(found.way) + 1).min(ACCESSES_MAX),
                // Under the other policies a use only moves the item to the tail.
                _ => 0,
            };
            (found.way, count)
        });
        self.link(body, body.index.bucket(place), before, Entry::new(place.tag, number, position));
        // The former item may have been inline, or moved there from the logs while room was made.
        self.empty_replaced(body, hash, key);
        Ok(())
    }

    /// Overwrites an item in place, if the new one has the same words before its key and is no longer than the item
    /// originally was.
    #[inline(always)]
    fn update_in_place(
        &self,
        found: &Found<'_>,
        header: Header,
        key: &[u8],
        value: &[u8],
        metadata: Metadata,
    ) -> bool {
        let before = found.header;
        if (before.has_expiry(), before.has_flags()) != (header.has_expiry(), header.has_flags()) {
            return false;
        }
        let Some(header) = before.with_value_len(value.len()) else { return false };
        let stored = found.stored();
        self.change(found.bucket, || {
            write_item(stored.log.ring(), stored.unit, header, metadata, key, value);
        });
        if self.counted_max > 0 {
            found.bucket.counts().count(found.way, self.counted_max);
        } else if self.common.eviction.moves_items() {
            self.promote(&Found { header, ..*found });
        }
        Counters::count(&self.counters.updated_in_place);
        true
    }

    /// The log for an item.
    #[inline(always)]
    fn log_for(&self, body: &Body, hash: KeyHash, header: Header, before: Option<&Found<'_>>) -> usize {
        if !self.common.eviction.has_probation() || header.words() > body.logs[PROBATION].item_words_max() {
            return MAIN;
        }
        if let Some(before) = before {
            return before.entry.log();
        }
        match &body.ghost {
            Some(ghost) if ghost.take(hash) => MAIN,
            _ => PROBATION,
        }
    }
}
