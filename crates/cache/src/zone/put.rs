//! Items that come from the hot zone.

use alluvium_base::KeyHash;

use crate::item::{Metadata, Stored};
use crate::partition::Common;

use super::block::{Block, ITEMS_MAX, Record, TAIL_ITEMS_MAX, all};
use super::directory::{Handle, Path};
use super::{TAIL_BYTES_MAX, Writer, Zone, add, fingerprint};

impl Zone {
    /// As [`put`](Self::put), for an item that is in a log.
    pub fn put_stored(&self, common: &Common, hash: KeyHash, stored: Stored<'_>) {
        let mut item = std::mem::take(&mut self.writer().item);
        let (key_len, value) = (stored.header.key_len(), stored.value());
        item.resize(key_len + value.len, 0);
        stored.copy_key(&mut item[..key_len]);
        value.copy_out(&mut item[key_len..]);
        self.put(common, hash, &item[..key_len], &item[key_len..], stored.metadata());
        if item.capacity() <= 2 * self.raw_bytes_max {
            self.writer().item = item;
        }
    }

    /// Writer: takes an item that leaves the hot zone, whose key has no item here that readers see. An item that is too
    /// large counts as evicted.
    ///
    /// Copies the block, and once for each few items compresses it again.
    pub fn put(&self, common: &Common, hash: KeyHash, key: &[u8], value: &[u8], metadata: Metadata) {
        add(&self.counters.came, 1);
        add(&self.counters.items, 1);
        let item = Record { key, value, metadata };
        if Record::bytes_max(key.len(), value.len()) > self.item_bytes_max {
            self.count_gone(&self.counters.evicted, 1);
            return;
        }
        let mut writer = self.writer();
        writer.encoder.sample(item);
        self.make_room(&mut writer, common);
        let path = Path::of(hash);
        match self.block(path) {
            Some(block) if self.append(&mut writer, path, &block, fingerprint(hash), item) => {}
            Some(block) => self.insert(&mut writer, common, &block, hash, item),
            None => {
                let depth = self.vacant_depth(path);
                let mut rebuild = std::mem::take(&mut writer.rebuild);
                rebuild.clear();
                rebuild.add(hash, item, false);
                let dropped = self.replace(&mut writer, &mut rebuild, &[], path.prefix(depth), depth);
                self.count_gone(&self.counters.evicted, dropped);
                writer.rebuild = rebuild;
            }
        }
        self.note_sizes(&writer);
    }

    /// Adds an item to the tail of a block if there is room, or the tail with the item as another chunk if that is
    /// small enough.
    fn append(
        &self,
        writer: &mut Writer,
        path: Path,
        block: &Block<'_>,
        fingerprint: u16,
        item: Record<'_>,
    ) -> bool {
        let Writer { arena, contents, draft, encoder, raw, dictionary_blocks, .. } = writer;
        let head = block.head;
        if head.items as usize == ITEMS_MAX || head.payload_bytes() > self.raw_bytes_max {
            return false;
        }
        raw.clear();
        item.write(raw);
        contents.copy(block, &self.compression);
        let Some(tail_bytes) = contents.tail_bytes() else { return false };
        let (tail, chunks) = contents.payload().split_at(tail_bytes);
        draft.copy(block);
        draft.add(fingerprint, false);
        let bytes = tail_bytes + raw.len();
        if bytes <= TAIL_BYTES_MAX && (head.tail as usize) < TAIL_ITEMS_MAX {
            draft.head.tail += 1;
            for part in [tail, raw, chunks] {
                draft.payload.extend_from_slice(part);
            }
        } else if encoder.chunk_bytes() < usize::MAX {
            draft.payload.extend_from_slice(chunks);
            raw.splice(0..0, tail.iter().copied());
            let coding = encoder.encode(head.tail as usize + 1, raw, &mut draft.payload);
            draft.head.dictionaries |= coding.dictionaries();
            draft.head.tail = 0;
        } else {
            return false;
        }
        let words = draft.finish();
        let Some(unit) = arena.reserve(words) else { return false };
        draft.write(&self.ring, unit);
        self.count_dictionaries(dictionary_blocks, draft.head.dictionaries, head.dictionaries);
        {
            let _changing = self.directory.begin_change(path);
            self.directory.set(head.prefix, head.depth, Some(Handle::at(unit)));
        }
        arena.drop_block(block.unit as u32, head.words);
        true
    }

    /// Composes a block anew with another item.
    fn insert(
        &self,
        writer: &mut Writer,
        common: &Common,
        block: &Block<'_>,
        hash: KeyHash,
        item: Record<'_>,
    ) {
        let mut rebuild = std::mem::take(&mut writer.rebuild);
        rebuild.clear();
        self.keep(writer, common, &mut rebuild, block, block.dead(), true);
        rebuild.add(hash, item, false);
        let dropped = self.replace(writer, &mut rebuild, &[*block], block.head.prefix, block.head.depth);
        self.count_gone(&self.counters.evicted, dropped);
        writer.rebuild = rebuild;
    }

    /// Adds the items of a block that are not `left_out` and have not expired to those that stay.
    pub(super) fn keep(
        &self,
        writer: &mut Writer,
        common: &Common,
        rebuild: &mut super::rebuild::Rebuild,
        block: &Block<'_>,
        left_out: u32,
        keeps_marks: bool,
    ) {
        writer.contents.copy(block, &self.compression);
        if writer.contents.decompress(self.raw_bytes_max).is_none() {
            debug_assert!(false, "a block that was written is sound");
            let items = all(block.head.items as usize) & !left_out;
            self.count_gone(&self.counters.evicted, u64::from(items.count_ones()));
            return;
        }
        let expired = rebuild.add_block(common, block, &writer.contents, left_out, keeps_marks);
        self.count_gone(&self.counters.expired, expired);
    }
}
