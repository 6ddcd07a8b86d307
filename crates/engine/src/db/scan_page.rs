//! [`Keyspace::scan`]: returns a page of items at a time, using nothing but the cursor.

use std::sync::Arc;

use super::found_item::{FoundItem, KeyValue};
use super::keyspace::Keyspace;
use super::read::View;
use super::scan_gather::Gather;
use super::scan_place::{first_place, group};
use crate::core::{KeyspaceState, Moment, Piece};
use crate::error::{Error, Result};
use crate::level::Version;

/// Number of items collected at a time: at first about as many as requested, and twice as many each time that the scan
/// continues and nothing was written meanwhile.
const PIECE_ITEMS_MIN: usize = 16;
const PIECE_ITEMS_MAX: usize = 4096;
/// Approximate maximum of their bytes, unless those of one place take more.
const PIECE_BYTES_MAX: u64 = 1 << 20;
const PIECE_BYTES_MIN: u64 = 4 << 10;
/// Number of items, removed and expired ones included, after which a call returns fewer than were requested.
const PASSED_MIN: usize = 1 << 16;

impl Keyspace {
    /// Returns about `count` items and the cursor for the next call. The first cursor is 0; a returned cursor of 0
    /// means the end. A call that passes very many removed or expired items returns fewer, even none.
    ///
    /// Items present from the first call to the last are returned, even if there are writes, merges, clears or a
    /// reopening meanwhile. Items absent all the time are not returned, and all others may be. Each call returns the
    /// items present when it is made. Only the cursor says where it continues, so scans may be abandoned, repeated and
    /// run concurrently, and nothing is pinned between calls. Items at the same position (the leading 64 bits of their
    /// key hash; in a semi-sorted keyspace, 40 of the prefix's and 24 of the suffix's) are returned by the same call.
    ///
    /// Costs reads of the pages with the items. The first call in a shard also reads the shard's sections of all runs
    /// in the order of slots or in buckets. Items collected beyond the page serve the next calls as long as nothing is
    /// written ([`crate::MemoryStats::scans`]: at most 32 MiB for all scans of a database, or 1/32 of its memory
    /// limit); after writes, each call collects its page anew.
    pub fn scan(&self, cursor: u64, count: usize) -> Result<(Vec<KeyValue>, u64)> {
        self.shared.check_present()?;
        let (shared, keyspace) = (self.database(), &*self.shared);
        let moment = Moment::At(shared.now_ms());
        let count = count.max(1);
        let passed_max = count.saturating_mul(2).max(PASSED_MIN);
        let mut items = Vec::new();
        let (mut from, mut last, mut passed) = (cursor, None, 0);
        loop {
            let (version, piece) = self.piece(from, count)?;
            for (place, item) in piece.items_from(from) {
                let is_over = items.len() >= count || passed >= passed_max;
                // A cursor is between two places, so the items of one place must stay together.
                if is_over && last != Some(place) {
                    return Ok((items, place));
                }
                (last, passed) = (Some(place), passed + 1);
                if moment.is_live(&item) {
                    let view = View { shared, keyspace, version: &version, moment, era: None };
                    let resolved = FoundItem::of(&item).resolve(view, &version)?;
                    items.extend(resolved.map(|(item, _)| item));
                }
            }
            match piece.to {
                None => return Ok((items, 0)),
                Some(to) if items.len() >= count || passed >= passed_max => return Ok((items, to)),
                Some(to) => from = to,
            }
        }
    }

    /// Like [`Keyspace::scan`], for the items whose keys have this prefix by the keyspace's prefix rule. Cursors are
    /// below 2^24.
    ///
    /// # Errors
    /// [`Error::NotSemiSorted`] for a keyspace without prefixes.
    pub fn scan_prefix_from(
        &self,
        prefix: impl AsRef<[u8]>,
        cursor: u64,
        count: usize,
    ) -> Result<(Vec<KeyValue>, u64)> {
        let prefix = prefix.as_ref();
        let hasher = &self.shared.hasher;
        let Some(hash) = hasher.prefix_hash(prefix) else {
            return Err(Error::NotSemiSorted { keyspace: self.shared.name.clone() });
        };
        let first = first_place(group(hash));
        let last = first_place(1) - 1;
        let (mut items, next) = self.scan(first | cursor.min(last), count)?;
        items.retain(|(key, _)| hasher.prefix_of(key) == Some(prefix));
        let is_in_group = next != 0 && group(next) == group(hash);
        Ok((items, if is_in_group { next - first } else { 0 }))
    }

    /// The items from a place on, in the current version.
    fn piece(&self, from: u64, count: usize) -> Result<(Arc<Version>, Arc<Piece>)> {
        let (shared, keyspace) = (self.database(), &*self.shared);
        let cache = &shared.scan_cache;
        let version = keyspace.version.load_full();
        let now = KeyspaceState::of(&version);
        if let Some(piece) = cache.piece(keyspace.id, from, &now) {
            return Ok((version, piece));
        }
        let wanted = count.saturating_add(1).clamp(PIECE_ITEMS_MIN, PIECE_ITEMS_MAX);
        let before = cache.take_piece_before(keyspace.id, from, &now);
        let target = before.map_or(wanted, |before| (2 * before).clamp(wanted, PIECE_ITEMS_MAX));
        let bytes_max = (shared.memory.budget().scan_bytes() / 4).clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX);
        let gather = Gather { shared, keyspace, version: &version, target, bytes_max: bytes_max as usize };
        let piece = Arc::new(gather.piece(from)?);
        if piece.len() > 0 {
            cache.keep_piece(shared, keyspace.id, (from, target), now, &piece);
        }
        Ok((version, piece))
    }
}
