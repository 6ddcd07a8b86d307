//! Finds room for an entry whose two buckets are full.
//!
//! Searches breadth first from both buckets, over the buckets that their entries could move to, until one has an empty
//! slot. Unlike the random walk of SILT this changes nothing until a whole path is known, so there is nothing to undo;
//! the path is the shortest one, a handful of moves instead of up to 128; and its loads do not wait for one another.

use super::placement::WAYS;
use super::tag_word::{empties, first_way, tag_at};

/// Two levels of buckets beyond the roots: enough for nearly every insertion, and cheap to set up.
const NODES_SMALL: usize = 2 + 8 + 32;

/// Four levels beyond the roots and most of the fifth. A search of all of them takes a few microseconds.
const NODES_MAX: usize = 2048;

/// Depth of a tree of [`NODES_MAX`] nodes.
const MOVES_MAX: usize = 5;

/// A chain of slots: each entry moves to the next slot, the last into an empty one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// From a root bucket to the bucket with the empty slot.
    steps: [Step; MOVES_MAX + 1],
    /// Index of the last step, whose slot is empty. At least 1.
    moves: usize,
}

/// A slot as bucket and way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub bucket: u32,
    pub way: u32,
}

impl Step {
    /// The step of a slot number.
    #[inline(always)]
    pub fn of(slot: u32) -> Self {
        Self { bucket: slot / WAYS, way: slot % WAYS }
    }

    /// The slot number.
    #[inline(always)]
    pub fn slot(self) -> u32 {
        self.bucket * WAYS + self.way
    }
}

impl Path {
    /// The slot that the moves leave empty.
    pub fn head(&self) -> Step {
        self.steps[0]
    }

    /// The moves as (from, to), far end first, so that each `to` is empty when its entry moves.
    pub fn moves(&self) -> impl Iterator<Item = (Step, Step)> + '_ {
        (0..self.moves).rev().map(|index| (self.steps[index], self.steps[index + 1]))
    }
}

/// What a path leads through: buckets of four lanes, each 0 or an entry that may be in one other bucket.
pub(crate) trait Lanes {
    /// The lanes of `bucket`, as a word of `tag_word`.
    fn lanes(&self, bucket: u32) -> u64;

    /// The other bucket of an entry whose lane in `bucket` is `lane`.
    fn alternative(&self, bucket: u32, lane: u16) -> u32;
}

/// The shortest path that empties a slot of one of the full buckets `roots`, if there is one among the first
/// [`NODES_MAX`] buckets.
///
/// No bucket is on the path twice: the continuation from its second visit would have been found at its first. So
/// every entry on the path is still where the search saw it when it is moved.
pub(crate) fn find(buckets: &impl Lanes, roots: [u32; 2]) -> Option<Path> {
    search::<NODES_SMALL>(buckets, roots).or_else(|| search::<NODES_MAX>(buckets, roots))
}

/// The search tree needs no links: all expanded buckets are full, so node `i` has the children `4 i + 2 ..= 4 i + 5`,
/// by way, and the roots are nodes 0 and 1.
fn search<const NODES: usize>(buckets: &impl Lanes, roots: [u32; 2]) -> Option<Path> {
    let mut nodes = [0u32; NODES];
    nodes[..2].copy_from_slice(&roots);
    for parent in 0..(NODES - 2) / 4 {
        let bucket = nodes[parent];
        let word = buckets.lanes(bucket);
        let first_child = 4 * parent + 2;
        for way in 0..4 {
            let child = buckets.alternative(bucket, tag_at(word, way));
            nodes[first_child + way as usize] = child;
            let empty = empties(buckets.lanes(child));
            if empty != 0 {
                return Some(trace(&nodes, first_child + way as usize, first_way(empty)));
            }
        }
    }
    None
}

/// The path from a root to the empty slot in `way` of node `last`.
fn trace(nodes: &[u32], last: usize, way: u32) -> Path {
    let mut moves = 0;
    let mut node = last;
    while node >= 2 {
        node = (node - 2) / 4;
        moves += 1;
    }
    let mut steps = [Step::default(); MOVES_MAX + 1];
    steps[moves] = Step { bucket: nodes[last], way };
    let mut child = last;
    for step in steps[..moves].iter_mut().rev() {
        let parent = (child - 2) / 4;
        *step = Step { bucket: nodes[parent], way: ((child - 2) % 4) as u32 };
        child = parent;
    }
    Path { steps, moves }
}
