//! Operations of a partition's writer on one key.

use std::borrow::Cow;

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::index::Index;
use crate::item::{Header, ItemView, Metadata};
use crate::region::Region;

use super::body::{Body, Found};
use super::cells::Ahead;
use super::policy::Policy;
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

impl<P: Policy, A: Access> Partition<P, A> {
    /// Gives `key`, whose hash is `hash`, a value.
    ///
    /// # Errors
    /// The policy's refusal; the key keeps its former item.
    #[inline(always)]
    pub fn set(
        &self,
        hash: KeyHash,
        key: &[u8],
        ahead: Ahead,
        value: &[u8],
        metadata: Metadata,
    ) -> Result<(), P::Refusal> {
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
    fn set_any(&self, hash: KeyHash, key: &[u8], value: &[u8], metadata: Metadata) -> Result<(), P::Refusal> {
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
        let Some(found) = body.find(body.index.place(hash), key) else {
            return P::remove_behind(self, hash, key);
        };
        let was_there = !self.is_expired(found.stored.metadata());
        let reason = if was_there { &self.counters.removed } else { &self.counters.expired };
        self.unlink(body, found.place.bucket, found.slot, reason);
        was_there
    }

    /// Decides what to do with the item of `key` based on its content, with no other write in between.
    ///
    /// # Errors
    /// The policy's refusal; the key keeps its former item.
    pub fn update<'v>(
        &self,
        hash: KeyHash,
        key: &[u8],
        decide: impl FnOnce(Option<(ItemView<'_>, Metadata)>) -> Change<'v>,
    ) -> Result<(), P::Refusal> {
        let _writing = self.enter();
        let body = self.begin_insert(hash);
        if let Some(found) = body.find_inline(hash, key) {
            let value = found.cell.value().to_vec();
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
        if let Some(expired) = found.filter(|found| self.is_expired(found.stored.metadata())) {
            self.unlink(body, expired.place.bucket, expired.slot, &self.counters.expired);
            found = None;
        }
        let change = match found {
            None => match P::copy_behind(self, hash, key) {
                None => decide(None),
                Some((value, metadata)) => decide(Some((self.view(&value, metadata), metadata))),
            },
            Some(found) => {
                let (value, metadata) = (found.stored.value().to_vec(), found.stored.metadata());
                decide(Some((self.view(&value, metadata), metadata)))
            }
        };
        match (change, found) {
            (Change::Keep, _) => {}
            (Change::Remove, None) => {
                P::remove_behind(self, hash, key);
            }
            (Change::Remove, Some(found)) => {
                self.unlink(body, found.place.bucket, found.slot, &self.counters.removed);
            }
            (Change::Put(write), found) => {
                return self.put(body, hash, found, key, &write.value, write.metadata);
            }
        }
        Ok(())
    }

    /// The first step of every write: upkeep that reads or the passing of time made due.
    #[inline(always)]
    pub(super) fn begin_write(&self) -> &Body<P> {
        let body = self.body.get();
        P::before_write(self, body);
        body
    }

    /// Stores the item of a key that has none, or replaces `found` in the region: in the key's inline bucket, if the
    /// key has no item yet and there is a cell, otherwise in the region.
    #[inline(always)]
    fn put(
        &self,
        body: &Body<P>,
        hash: KeyHash,
        found: Option<Found<'_>>,
        key: &[u8],
        value: &[u8],
        metadata: Metadata,
    ) -> Result<(), P::Refusal> {
        if found.is_none() && metadata == Metadata::default() && P::put_in_cell(self, body, hash, key, value)
        {
            return Ok(());
        }
        self.put_in_region(body, hash, found, key, value, metadata)
    }

    /// The same, in the region.
    #[inline(always)]
    pub fn put_in_region(
        &self,
        body: &Body<P>,
        hash: KeyHash,
        found: Option<Found<'_>>,
        key: &[u8],
        value: &[u8],
        metadata: Metadata,
    ) -> Result<(), P::Refusal> {
        if let Some(found) = found
            && self.update_in_place(body, &found, key, value, metadata)
        {
            return Ok(());
        }
        let outcome = self.put_at_new_position(body, hash, found, key, value, metadata);
        if outcome.is_err() {
            Counters::count(&self.counters.refused);
        }
        outcome
    }

    #[inline(always)]
    fn put_at_new_position(
        &self,
        body: &Body<P>,
        hash: KeyHash,
        found: Option<Found<'_>>,
        key: &[u8],
        value: &[u8],
        metadata: Metadata,
    ) -> Result<(), P::Refusal> {
        let (has_expiry, has_flags) = (metadata.expires_at_ms != 0, metadata.flags != 0);
        let Some(header) = Header::new(key.len(), value.len(), has_expiry, has_flags) else {
            return Err(P::too_large(body));
        };
        let (entry, header) = P::admit(self, body, hash, header, found.as_ref())?;
        body.region.site(entry).write(header, metadata, key, value);
        let before = found.and_then(|found| self.find_again(body, found, key));
        if let Err(refusal) = self.link(body, hash, before.as_ref(), entry) {
            body.region.free(entry);
            return Err(refusal);
        }
        if let Some(before) = before {
            body.region.free(before.entry);
        }
        // The former item may have been inline, or moved there from the region while room was made.
        self.empty_replaced(body, hash, key);
        Ok(())
    }

    /// Overwrites an item in place, if the new one has the same words before its key and is no longer than the item
    /// originally was.
    #[inline(always)]
    fn update_in_place(
        &self,
        body: &Body<P>,
        found: &Found<'_>,
        key: &[u8],
        value: &[u8],
        metadata: Metadata,
    ) -> bool {
        let before = found.stored.header;
        if (before.has_expiry(), before.has_flags()) != (metadata.expires_at_ms != 0, metadata.flags != 0) {
            return false;
        }
        let Some(header) = before.with_value_len(value.len()) else { return false };
        let site = body.region.site(found.entry);
        self.change(body.index.first(found.place), || site.write(header, metadata, key, value));
        P::on_update(self, body, found);
        Counters::count(&self.counters.updated_in_place);
        true
    }
}
