//! Makes room for blocks: drops items that were not used (thesis, §3.3.2), joins blocks that became small, and moves
//! blocks together.

use alluvium_base::KeyHash;

use crate::partition::Common;
use crate::sync::Ordering;

use super::arena::Arena;
use super::block::{Block, ITEMS_MAX, all};
use super::directory::{Handle, Path, STRIPE_BITS};
use super::rebuild::block_bytes;
use super::{Writer, Zone, add};

/// Blocks that one write may sweep beyond what its own item needs, and segments that it empties before it drops items
/// to get room.
const STEPS_MAX: usize = 4;

impl Zone {
    /// Makes room for the blocks that one more item may lead to.
    pub(super) fn make_room(&self, writer: &mut Writer, common: &Common) {
        // A block may split in two, each of which is at most a full one.
        let words = (2 * self.raw_bytes_max / crate::memory::UNIT_BYTES) as u32;
        let mut steps = 0;
        loop {
            // Blocks that a sweep composes anew need room, too, so moving blocks together comes first.
            let must = !writer.arena.has_room(words);
            let is_over = writer.arena.is_over(u64::from(words));
            let moves = must && (steps < STEPS_MAX || steps.is_multiple_of(2));
            let is_done = if moves {
                self.empty_one(writer)
            } else if must || is_over && steps < STEPS_MAX {
                false
            } else if writer.arena.exceeds_limit() && steps == 0 {
                self.empty_one(writer)
            } else {
                return;
            };
            if !is_done {
                if writer.arena.live_words() == 0 {
                    return;
                }
                self.sweep_next(writer, common);
            }
            steps += 1;
        }
    }

    /// Drops some of the items that were not used since the last round, in the next block.
    fn sweep_next(&self, writer: &mut Writer, common: &Common) {
        let path = Path::of(KeyHash::from_halves(0, writer.sweep_low));
        let Some(block) = self.block(path) else {
            let depth = self.directory.depth();
            writer.sweep_low = (writer.sweep_low | u64::MAX >> depth).wrapping_add(1);
            return;
        };
        writer.sweep_low = (writer.sweep_low | u64::MAX >> block.head.depth).wrapping_add(1);
        let (dead, accessed) = (block.dead(), block.accessed());
        let unused = all(block.head.items as usize) & !dead & !accessed;
        let obsolete = self.compression.dictionaries.as_ref().map_or(0, |all| all.obsolete());
        if unused == 0 && dead == 0 && block.head.dictionaries & obsolete == 0 {
            block.set_marks(0, 0);
            return;
        }
        let victims = self.choose(writer, unused);
        let mut rebuild = std::mem::take(&mut writer.rebuild);
        rebuild.clear();
        self.keep(writer, common, &mut rebuild, &block, dead | victims, false);
        // An expired item among the victims counts as evicted.
        self.count_gone(&self.counters.evicted, u64::from(victims.count_ones()));
        let mut before = vec![block];
        let (mut prefix, mut depth) = (block.head.prefix, block.head.depth);
        if let Some(sibling) = self.small_sibling(writer, &block, rebuild.len(), rebuild.bytes()) {
            self.keep(writer, common, &mut rebuild, &sibling, sibling.dead(), true);
            before.push(sibling);
            depth -= 1;
            prefix &= (1 << depth) - 1;
        }
        let dropped = self.replace(writer, &mut rebuild, &before, prefix, depth);
        self.count_gone(&self.counters.evicted, dropped);
        writer.rebuild = rebuild;
    }

    /// A random half of these items, one bit each, rounded up.
    fn choose(&self, writer: &mut Writer, unused: u32) -> u32 {
        let (mut victims, mut left) = (0, unused);
        for _ in 0..unused.count_ones().div_ceil(2) {
            // xorshift64
            writer.random ^= writer.random << 13;
            writer.random ^= writer.random >> 7;
            writer.random ^= writer.random << 17;
            let mut nth = left;
            for _ in 0..writer.random % u64::from(left.count_ones()) {
                nth &= nth - 1;
            }
            let victim = nth & nth.wrapping_neg();
            victims |= victim;
            left &= !victim;
        }
        victims
    }

    /// The block that differs from this one in the last bit only, if the items of both would fill at most three
    /// quarters of a block. The thesis never joins blocks, although replacement halves them.
    fn small_sibling(
        &self,
        writer: &mut Writer,
        block: &Block<'_>,
        items: usize,
        bytes: usize,
    ) -> Option<Block<'_>> {
        let depth = block.head.depth;
        if depth <= STRIPE_BITS {
            return None;
        }
        let sibling = self.block(Path(u64::from(block.head.prefix ^ 1 << (depth - 1))))?;
        let live = (all(sibling.head.items as usize) & !sibling.dead()).count_ones() as usize;
        let mean = bytes.checked_div(items).unwrap_or(0);
        let bytes_max = block_bytes(writer.encoder.chunk_bytes());
        let fits = items + live <= ITEMS_MAX * 3 / 4 && bytes + live * mean <= bytes_max * 3 / 4;
        (sibling.head.depth == depth && fits).then_some(sibling)
    }

    /// Moves the blocks of the segment with the fewest of them to others; returns whether it did.
    fn empty_one(&self, writer: &mut Writer) -> bool {
        let Some((number, words)) = writer.arena.emptiest() else { return false };
        let mut unit = words.start;
        while unit < words.end {
            let Some(block) = Block::at(&self.ring, self.words, unit) else {
                debug_assert!(false, "blocks follow one another");
                return false;
            };
            if self.directory.get(Path(u64::from(block.head.prefix))) == Some(Handle::at(unit))
                && !self.move_block(&mut writer.arena, &block)
            {
                return false;
            }
            unit += block.head.words;
        }
        writer.arena.emptied(number, &self.ring);
        true
    }

    fn move_block(&self, arena: &mut Arena, block: &Block<'_>) -> bool {
        let words = block.head.words;
        let Some(unit) = arena.reserve(words) else { return false };
        let source = self.ring.run(block.unit, words as usize);
        for (from, to) in source.zip(self.ring.run(unit as usize, words as usize)) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        {
            let _changing = self.directory.begin_change(Path(u64::from(block.head.prefix)));
            self.directory.set(block.head.prefix, block.head.depth, Some(Handle::at(unit)));
        }
        arena.drop_block(block.unit as u32, words);
        add(&self.counters.moved, 1);
        true
    }
}
