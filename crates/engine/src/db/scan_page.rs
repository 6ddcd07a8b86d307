//! [`Keyspace::scan`]: a page of items at a time, found by the cursor alone.

use std::sync::Arc;

use super::found_item::{FoundItem, KeyValue};
use super::keyspace::Keyspace;
use super::metadata::Moment;
use super::read::View;
use super::scan_gather::Gather;
use super::scan_piece::{self, Piece};
use crate::error::Result;
use crate::level::Version;

/// Items gathered at a time: at first about as many as are wanted, twice as many each time when the scan goes on and
/// nothing was written meanwhile.
const PIECE_ITEMS_MIN: usize = 16;
const PIECE_ITEMS_MAX: usize = 4096;
/// Bytes of them, at most about, unless those of one place take more.
const PIECE_BYTES_MAX: u64 = 1 << 20;
const PIECE_BYTES_MIN: u64 = 4 << 10;
/// Items that a call passes before it returns fewer than were asked for: removed and expired ones count.
const PASSED_MIN: usize = 1 << 16;

impl Keyspace {
    /// Returns about `count` items and the cursor for the next call. The first cursor is 0; a returned cursor of 0
    /// means the end. A call that passes very many removed or expired items returns fewer, even none.
    ///
    /// Items present from the first call to the last are returned, whatever is written, merged or cleared meanwhile,
    /// also over a reopening; removed ones that were absent all the time are not, and others may be. Each call returns
    /// what is there when it is made: the cursor alone says where it goes on, so scans may be abandoned, repeated and
    /// run beside each other, and between calls nothing is pinned. Items that share their place (the leading 64 bits of
    /// their key hash; in a semi-sorted keyspace 40 of the prefix's and 24 of the suffix's) come together.
    ///
    /// Costs reads of the pages that hold the items, and of all runs in the order of slots or in buckets at the first
    /// call in a shard. What is gathered beyond the page serves the next calls as long as nothing is written
    /// ([`crate::MemoryStats::scans`]: at most 32 MiB for all scans of a database, or 1/32 of its memory limit);
    /// after writes each call gathers its page anew.
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
                // A cursor stands between two places, so the items of one must not be torn apart.
                if is_over && last != Some(place) {
                    return Ok((items, place));
                }
                (last, passed) = (Some(place), passed + 1);
                if moment.is_live(&item) {
                    let view = View { shared, keyspace, version: &version, moment };
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

    /// The items from a place on, as they are in the present version.
    fn piece(&self, from: u64, count: usize) -> Result<(Arc<Version>, Arc<Piece>)> {
        let (shared, keyspace) = (self.database(), &*self.shared);
        let cache = &shared.scan_cache;
        let version = keyspace.version.load_full();
        let now = scan_piece::Moment::of(&version);
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
