//! What any thread may do: find an item and read it.

use alluvium_base::KeyHash;

use crate::access::{Access, Gate};
use crate::canary::{Canary, is_broken};
use crate::index::bucket::{Bucket, Version};
use crate::index::{Entry, Place, Versioned};
use crate::inline::Cell;
use crate::item::{Header, Metadata};
use crate::log::CircularLog;
use crate::memory::UNIT_BYTES;
use crate::sync::{Ordering, spin_hint};

use super::Partition;
use super::body::{Body, Found};
use super::inline::Look;

/// An item in its log. Beside a writer its bytes may be anything until the read is validated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored<'a> {
    pub(super) log: &'a CircularLog,
    pub(super) unit: usize,
    pub(super) header: Header,
}

/// The value that a read found, as [`Stored`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    Log(Stored<'a>),
    Inline(Cell<'a>),
}

impl Source<'_> {
    /// Bytes of the value.
    #[inline(always)]
    pub fn value_len(&self) -> usize {
        match self {
            Self::Log(stored) => stored.value_len(),
            Self::Inline(cell) => cell.value_len(),
        }
    }

    /// Copies the value.
    ///
    /// # Panics
    /// If `out` is longer than the value.
    #[inline(always)]
    pub fn copy_value(&self, out: &mut [u8]) {
        match self {
            Self::Log(stored) => stored.copy_value(out),
            Self::Inline(cell) => cell.copy_value(out),
        }
    }
}

impl Stored<'_> {
    /// Bytes of the value.
    #[inline(always)]
    pub fn value_len(&self) -> usize {
        self.header.value_len()
    }

    /// Copies the value.
    ///
    /// # Panics
    /// If `out` is longer than the value.
    #[inline(always)]
    pub fn copy_value(&self, out: &mut [u8]) {
        self.log.ring().copy_out(self.unit * UNIT_BYTES + self.header.value_start(), out);
    }

    /// Copies the key.
    pub fn copy_key(&self, out: &mut [u8]) {
        self.log.ring().copy_out(self.unit * UNIT_BYTES + self.header.key_start(), out);
    }

    /// Expiry and flags.
    #[inline(always)]
    pub fn metadata(&self) -> Metadata {
        if self.header.has_extras() { self.extras() } else { Metadata::default() }
    }

    #[inline(never)]
    fn extras(&self) -> Metadata {
        let mut metadata = Metadata::default();
        if self.header.has_expiry() {
            metadata.expires_at_ms = self.log.ring().word(self.unit + 1).load(Ordering::Relaxed);
        }
        if self.header.has_flags() {
            let word = self.unit + self.header.fixed_words() - 1;
            metadata.flags = self.log.ring().word(word).load(Ordering::Relaxed) as u32;
        }
        metadata
    }
}

impl Body {
    /// The item of `key`, in the bucket and under the tag of `place`.
    #[inline(always)]
    pub fn find(&self, place: Place, key: &[u8]) -> Option<Found<'_>> {
        self.find_among(place, self.index.bucket(place).matches(place.tag), key)
    }

    /// As [`find`](Self::find), but checks `ways` before the others.
    #[inline(always)]
    pub fn find_beginning_with(&self, place: Place, ways: u32, key: &[u8]) -> Option<Found<'_>> {
        match self.find_among(place, ways, key) {
            None => self.find(place, key),
            found => found,
        }
    }

    /// The item of `key`, if the entry of one of the ways in `candidates`, one bit each, refers to it.
    #[inline(always)]
    pub fn find_among(&self, place: Place, mut candidates: u32, key: &[u8]) -> Option<Found<'_>> {
        let bucket = self.index.bucket(place);
        while candidates != 0 {
            let way = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            let entry = bucket.entry(way);
            // The way may have been emptied since the candidates were determined.
            if entry.tag() == place.tag
                && let Some(header) = self.header_of(entry, key)
            {
                return Some(Found { body: self, bucket, way, entry, header });
            }
        }
        None
    }

    /// Starts loading the items that a lookup of `place` would compare; the bucket should already be in the cache.
    /// Returns the ways of their entries.
    #[inline(always)]
    pub fn prefetch_items(&self, place: Place) -> u32 {
        let bucket = self.index.bucket(place);
        let found = bucket.matches(place.tag);
        let mut candidates = found;
        while candidates != 0 {
            let entry = bucket.entry(candidates.trailing_zeros() as usize);
            let log = self.log(entry);
            log.ring().prefetch(log.layout().unit(entry.position()), self.shape.item_bytes());
            candidates &= candidates - 1;
        }
        found
    }
}

impl<'a> Found<'a> {
    #[inline(always)]
    pub fn stored(&self) -> Stored<'a> {
        let log = self.body.log(self.entry);
        Stored { log, unit: log.layout().unit(self.entry.position()), header: self.header }
    }
}

impl<A: Access> Partition<A> {
    /// Finds the item of `key`, whose hash is `hash`, and returns the result of `extract`. Beside a writer `extract`
    /// may be called several times, with inconsistent bytes; only the result of the last call counts.
    ///
    /// Counts an access for the eviction policy, but no hit or miss. `ways` are checked before the others.
    #[inline(always)]
    pub fn read<T>(
        &self,
        hash: KeyHash,
        key: &[u8],
        ways: u32,
        mut extract: impl FnMut(Source<'_>, Metadata) -> T,
    ) -> Option<T> {
        match self.try_read(hash, key, ways, &mut extract) {
            Some(outcome) => outcome,
            None => self.read_again(hash, key, &mut extract),
        }
    }

    /// Not inline, so that the common case is not a loop, before which the compiler would prepare values that a
    /// repetition needs.
    #[cold]
    #[inline(never)]
    fn read_again<T>(
        &self,
        hash: KeyHash,
        key: &[u8],
        extract: &mut impl FnMut(Source<'_>, Metadata) -> T,
    ) -> Option<T> {
        loop {
            spin_hint();
            if let Some(outcome) = self.try_read(hash, key, 0, extract) {
                return outcome;
            }
        }
    }

    /// The outcome of a read; `None` if a writer interfered.
    #[inline(always)]
    fn try_read<T>(
        &self,
        hash: KeyHash,
        key: &[u8],
        ways: u32,
        extract: &mut impl FnMut(Source<'_>, Metadata) -> T,
    ) -> Option<Option<T>> {
        let body = self.body.get();
        let absence = match self.look_inline(body, hash, key) {
            Look::Item(seen) => {
                let value = extract(Source::Inline(seen.item.cell), Metadata::default());
                return self.confirm_inline(body, &seen).then_some(Some(value));
            }
            Look::Unusual => return None,
            Look::Absent(absence) => absence,
        };
        let place = body.index.place(hash);
        let bucket = body.index.bucket(place);
        let version = A::READS_BESIDE_WRITES.then(|| bucket.version().begin_read());
        let found = body.find_beginning_with(place, ways, key);
        // No closures here: the result of one that is not inlined is stored, and loading it waits for the item.
        let read = match found {
            Some(found) => {
                let stored = found.stored();
                let metadata = stored.metadata();
                Some((found, metadata, extract(Source::Log(stored), metadata)))
            }
            None => None,
        };
        if let Some(version) = version
            && !self.is_valid(body, bucket, version, found.map(|found| found.entry))
        {
            return None;
        }
        let Some((found, metadata, value)) = read else { return absence.still_holds().then_some(None) };
        if self.is_expired(metadata) {
            return Some(None);
        }
        self.on_hit(&found, hash);
        Some(Some(value))
    }

    /// Whether what was loaded since `version` was taken is consistent.
    #[inline(always)]
    fn is_valid(&self, body: &Body, bucket: &Bucket, version: Version, entry: Option<Entry>) -> bool {
        self.is_at_rest(body, bucket, version)
            && (!self.common.eviction.leaves_entries()
                || is_broken(Canary::HeadUnchecked)
                || entry.is_none_or(|entry| body.log(entry).contains(entry.position())))
    }

    /// Whether an item with this metadata has expired.
    #[inline(always)]
    pub(super) fn is_expired(&self, metadata: Metadata) -> bool {
        metadata.expires_at_ms != 0 && metadata.expires_at_ms <= self.common.now_ms()
    }

    /// Reports a hit to the eviction policy. Returns the item's entry, which may have changed.
    #[inline(always)]
    pub(super) fn on_hit(&self, found: &Found<'_>, hash: KeyHash) -> Entry {
        if self.counted_max > 0 {
            found.bucket.counts().count(found.way, self.counted_max);
        } else if self.common.eviction.moves_items() {
            if A::READS_BESIDE_WRITES {
                self.promotions.note(hash);
            } else if !self.gate.is_lent() {
                return self.promote(found);
            }
        }
        found.entry
    }

    /// Starts loading what shows whether a new key was evicted recently.
    #[inline(always)]
    pub fn prefetch_ghost(&self, hash: KeyHash) {
        if let Some(ghost) = &self.body.get().ghost {
            ghost.prefetch(hash);
        }
    }

    /// The body that reads use now, for prefetching.
    #[inline(always)]
    pub fn current_body(&self) -> &Body {
        self.body.get()
    }
}
