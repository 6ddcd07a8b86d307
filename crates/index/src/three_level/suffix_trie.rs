//! [`SuffixTries`]: the third level as entropy-coded tries of separators.
//!
//! ```text
//! encode(T):  nothing                                               if |T| = 0
//!             distance to the usual length, bits of the separator   if |T| = 1
//!             code(|T|, |left|) encode(left) encode(right)          otherwise
//! ```
//!
//! Each group that boundaries split has a trie over the points of its separators. Pages are about equally full, so the
//! points are spread more evenly than random ones, and a split is coded by its distance from the middle. Below the
//! last split, a separator is coded as it is. Unlike a trie over keys it says on which side of every separator *any*
//! suffix is, since the suffixes of most keys are not among the pages' last ones.
//!
//! Tries of [`LONG_MIN`] separators and more, if they are a group's whole trie or a left half, start with their length,
//! so that a lookup of one in `n` separators skips some codes on each of `log2(n)` levels.

use alluvium_base::Corruption;

use super::cursor::Cursor;
use super::groups::Groups;
use super::separator::FinishedSeparators;
use crate::elias_fano::NearLinearList;
use crate::elias_fano::wire::{WireReader, WireWriter};
use crate::trie::bits::BitWriter;
use crate::trie::golomb;

/// Number of separators from which on a part stores its length.
const LONG_MIN: u64 = 8;

/// Approximate number of boundaries between two stored positions.
const BLOCK_BOUNDARIES: u64 = 4;

/// Log2 of the maximum number of cells between two stored positions.
const CELLS_LOG2_MAX: u32 = 4;

/// Order of the code of a lone separator's length.
const LONE_ORDER: u32 = 1;

/// Maximum number of bits of a separator: below each of 64 splits, its own, and its part in the lengths.
const SEPARATOR_BITS_MAX: u64 = 64 * 64;

/// Tries of separators, one for each group that boundaries split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SuffixTries {
    /// Log2 of the number of cells between two stored positions.
    cells_log2: u32,
    /// Usual length of a lone separator in a group with one separator.
    lone_bits: u32,
    /// Position of the first bit of every `2^cells_log2`th cell, and the number of bits.
    starts: NearLinearList,
    code: Vec<u64>,
}

/// A trie to be read.
#[derive(Clone, Copy)]
struct Part {
    /// Number of separators.
    count: u64,
    /// Bits above its root.
    depth: u32,
}

impl SuffixTries {
    /// Codes `separators`, which split the groups in `groups`.
    pub(super) fn new(separators: &FinishedSeparators, groups: &Groups) -> Self {
        let block_cells = groups.cells().saturating_mul(BLOCK_BOUNDARIES) / groups.pages().max(1);
        let cells_log2 = block_cells.max(1).ilog2().min(CELLS_LOG2_MAX);
        let lone_bits = usual_lone_bits(separators, groups);
        let mut out = BitWriter::default();
        let mut starts = Vec::new();
        let mut points = Vec::new();
        let mut rest = separators.iter().filter(|separator| separator.splits());
        for cell in 0..groups.cells() {
            if cell % (1 << cells_log2) == 0 {
                starts.push(out.len());
            }
            let count = groups.boundaries(cell);
            points.clear();
            points.extend(rest.by_ref().take(count as usize).map(|separator| separator.point()));
            let usual = usual_bits(lone_bits, count);
            put_counted(&points, 0, usual, &mut out);
        }
        starts.push(out.len());
        let starts = NearLinearList::new(starts.iter().copied(), starts.len() as u64, out.len());
        Self { cells_log2, lone_bits, starts, code: out.finish() }
    }

    /// Counts the boundaries at or before `suffix` among those that split the group `cell`.
    #[inline(always)]
    pub(super) fn count_at_most(&self, groups: &Groups, cell: u64, suffix: u64) -> u64 {
        let block = cell >> self.cells_log2;
        let mut cursor = Cursor::new(&self.code, self.starts.get(block));
        for before in block << self.cells_log2..cell {
            let count = groups.boundaries(before);
            let whole = Part { count, depth: 0 };
            if skip(&mut cursor, whole, usual_bits(self.lone_bits, count)).is_none() {
                return 0;
            }
        }
        self.walk(cursor, groups.boundaries(cell), suffix)
    }

    #[inline(always)]
    fn walk(&self, mut cursor: Cursor<'_>, mut count: u64, suffix: u64) -> u64 {
        let usual = usual_bits(self.lone_bits, count);
        let mut before = 0;
        let mut is_counted = true;
        for depth in 0..u64::BITS {
            if is_counted && count >= LONG_MIN && take_length(&mut cursor, count).is_none() {
                return before;
            }
            if count <= 1 {
                let Some(point) = (if count == 0 { None } else { take_lone(&mut cursor, depth, usual) })
                else {
                    return before;
                };
                return before + u64::from(point <= suffix << depth);
            }
            let Some(left) = take_split(&mut cursor, count) else {
                return before;
            };
            is_counted = suffix << depth >> 63 == 0;
            if is_counted {
                count = left;
            } else {
                if skip(&mut cursor, Part { count: left, depth: depth + 1 }, usual).is_none() {
                    return before;
                }
                before += left;
                count -= left;
            }
        }
        // Points without any bits left to differ in are equal.
        before + count
    }

    /// Bytes of memory that the tries own.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.code.capacity() * size_of::<u64>()) as u64 + self.starts.memory_bytes()
    }

    /// Appends the two numbers, the positions and the code.
    pub(super) fn write(&self, writer: &mut WireWriter) {
        writer.word(u64::from(self.cells_log2));
        writer.word(u64::from(self.lone_bits));
        self.starts.write(writer);
        writer.words(&self.code);
    }

    /// Reads the tries for `groups`.
    pub(super) fn read(groups: &Groups, reader: &mut WireReader<'_>) -> Result<Self, Corruption> {
        let cells_log2 = reader.word_up_to(u64::from(CELLS_LOG2_MAX), "a distance of positions")? as u32;
        let lone_bits = reader.word_up_to(64, "a number of bits")? as u32;
        let step_max = groups.pages().saturating_add(1).saturating_mul(SEPARATOR_BITS_MAX);
        let blocks = groups.cells().div_ceil(1 << cells_log2);
        let starts = NearLinearList::read(blocks, step_max, reader)?;
        let code = reader.words(usize::try_from(starts.last().div_ceil(64)).unwrap_or(usize::MAX))?;
        Ok(Self { cells_log2, lone_bits, starts, code })
    }
}

/// Usual number of bits of a lone separator at the root of a group with `count` separators: one bit more for twice as
/// many separators.
#[inline(always)]
fn usual_bits(lone_bits: u32, count: u64) -> u32 {
    lone_bits + count.max(1).ilog2()
}

/// The median excess of the separators' lengths over the logarithm of their number in the group.
fn usual_lone_bits(separators: &FinishedSeparators, groups: &Groups) -> u32 {
    let mut rest = separators.iter().filter(|separator| separator.splits());
    let mut counts = [0u64; 65];
    let mut all = 0;
    for cell in 0..groups.cells() {
        let count = groups.boundaries(cell);
        let log2 = count.max(1).ilog2();
        for separator in rest.by_ref().take(count as usize) {
            let bits = u64::BITS - separator.point().trailing_zeros();
            counts[bits.saturating_sub(log2) as usize] += 1;
            all += 1;
        }
    }
    let mut seen = 0;
    let median = counts.iter().position(|count| {
        seen += count;
        seen * 2 >= all
    });
    median.unwrap_or(0) as u32
}

/// Writes a part whose beginning a reader must find: preceded by its length if it is long.
fn put_counted(points: &[u64], depth: u32, usual: u32, out: &mut BitWriter) {
    let count = points.len() as u64;
    if count < LONG_MIN || depth == u64::BITS {
        return put(points, depth, usual, out);
    }
    let mut part = BitWriter::default();
    put(points, depth, usual, &mut part);
    let (code, length) = golomb::half_code(count, mean_bits(count), part.len());
    out.put(code, length);
    out.append(&mut part);
}

/// Writes a part: sorted points that share their first `depth` bits.
fn put(points: &[u64], depth: u32, usual: u32, out: &mut BitWriter) {
    if depth == u64::BITS {
        return;
    }
    match points {
        [] => {}
        [point] => put_lone(point << depth, depth, usual, out),
        _ => {
            let left = points.partition_point(|point| point << depth >> 63 == 0);
            put_split(points.len() as u64, left as u64, out);
            let (left, right) = points.split_at(left);
            put_counted(left, depth + 1, usual, out);
            put(right, depth + 1, usual, out);
        }
    }
}

/// Skips a part that [`put_counted`] wrote; `None` if there is none.
#[inline(always)]
fn skip(cursor: &mut Cursor<'_>, part: Part, usual: u32) -> Option<()> {
    match part.count {
        0 => Some(()),
        _ if part.depth == u64::BITS => Some(()),
        1 => take_lone(cursor, part.depth, usual).map(|_| ()),
        count if count >= LONG_MIN => {
            let length = take_length(cursor, count)?;
            cursor.skip(length);
            Some(())
        }
        _ => skip_short(cursor, part, usual),
    }
}

/// [`skip`] for less than [`LONG_MIN`] separators, which also limits the number of pending parts.
fn skip_short(cursor: &mut Cursor<'_>, part: Part, usual: u32) -> Option<()> {
    let mut waiting = [part; LONG_MIN as usize];
    let mut last = 0;
    loop {
        let Part { count, depth } = waiting[last];
        if count >= 2 && depth < u64::BITS {
            let left = take_split(cursor, count)?;
            waiting[last] = Part { count: count - left, depth: depth + 1 };
            if left > 0 {
                last += usize::from(count > left);
                *waiting.get_mut(last)? = Part { count: left, depth: depth + 1 };
            }
            continue;
        }
        if count == 1 && depth < u64::BITS {
            take_lone(cursor, depth, usual)?;
        }
        match last.checked_sub(1) {
            Some(before) => last = before,
            None => return Some(()),
        }
    }
}

/// Usual number of bits; a deviation only costs bits.
fn mean_bits(count: u64) -> u64 {
    count * 9
}

#[inline(always)]
fn take_length(cursor: &mut Cursor<'_>, count: u64) -> Option<u64> {
    let (bits, length) = golomb::decode_half(count, mean_bits(count), cursor.peek())?;
    cursor.skip(u64::from(length));
    Some(bits)
}

/// Order of the code of a split's distance from the middle: even counts have one middle, odd counts two. With evenly
/// spread points distances grow as `sqrt(count) / 8`.
#[inline(always)]
fn split_order(count: u64) -> u32 {
    (count.ilog2() / 2).saturating_sub(2).max((count & 1) as u32)
}

fn put_split(count: u64, left: u64, out: &mut BitWriter) {
    let (code, length) = golomb::code(golomb::fold(left, count.div_ceil(2)), split_order(count));
    out.put(code, length);
}

#[inline(always)]
fn take_split(cursor: &mut Cursor<'_>, count: u64) -> Option<u64> {
    let (folded, length) = golomb::decode(cursor.peek(), split_order(count))?;
    cursor.skip(u64::from(length));
    let left = golomb::unfold(folded, count.div_ceil(2));
    (left <= count).then_some(left)
}

/// Writes the bits of a separator below its last split. `usual` is the usual number of bits at the group's root.
fn put_lone(rest: u64, depth: u32, usual: u32, out: &mut BitWriter) {
    let bits = if rest == 0 { 0 } else { u64::BITS - rest.trailing_zeros() };
    let usual = usual.saturating_sub(depth);
    let (code, length) = golomb::code(golomb::fold(u64::from(bits), u64::from(usual)), LONE_ORDER);
    out.put(code, length);
    if bits > 1 {
        out.put(rest >> (u64::BITS - bits) >> 1, bits - 1);
    }
}

#[inline(always)]
fn take_lone(cursor: &mut Cursor<'_>, depth: u32, usual: u32) -> Option<u64> {
    let usual = usual.saturating_sub(depth);
    let (folded, length) = golomb::decode(cursor.peek(), LONE_ORDER)?;
    cursor.skip(u64::from(length));
    let bits = golomb::unfold(folded, u64::from(usual));
    match u32::try_from(bits).ok().filter(|bits| *bits <= u64::BITS)? {
        0 => Some(0),
        bits => Some((cursor.take(bits - 1) << 1 | 1) << (u64::BITS - bits)),
    }
}
