//! Lookups of many keys in one call, for buffers of either mode.
//!
//! Direct lookups are a loop over the index and nothing else: the cost of a bypassed buffer is paid once for all of
//! them. For lookups through the table, the lines of the next keys are loaded ahead.

use std::borrow::Borrow;

use super::access::through;
use super::clock::Clock;
use super::lookup::Lookup;
use super::mode::Mode;
use super::pilot::Pilot;
use super::table::Table;

/// Number of keys whose lines are loaded before the first of them is looked up: about as many loads as a core can
/// have in flight.
const AHEAD: usize = 16;

/// Looks up the first of `keys`, at least one, up to the pilot's next turn, which must not be due. Returns the others.
#[inline(always)]
pub(super) fn some<'a, 'k, I: Lookup, M: Mode, C: Clock, K: Borrow<I::Key>>(
    index: &'a I,
    table: &Table<M>,
    pilot: &mut Pilot<C>,
    keys: &'k [K],
    take: &mut impl FnMut(&'k K, Option<I::Item<'a>>),
) -> &'k [K] {
    let (now, later) = keys.split_at(pilot.left().min(keys.len()));
    if pilot.uses_table() {
        for keys in now.chunks(AHEAD) {
            through_ahead(index, table, pilot, keys, take);
        }
        return later;
    }
    pilot.count_direct_many(now.len());
    directly(index, now, take);
    later
}

/// A separate function, so that what the loop needs of the index stays in registers.
#[inline(never)]
fn directly<'a, 'k, I: Lookup, K: Borrow<I::Key>>(
    index: &'a I,
    keys: &'k [K],
    take: &mut impl FnMut(&'k K, Option<I::Item<'a>>),
) {
    for key in keys {
        take(key, index.search(key.borrow()).map(|(_, item)| item));
    }
}

#[inline(never)]
fn through_ahead<'a, 'k, I: Lookup, M: Mode, C: Clock, K: Borrow<I::Key>>(
    index: &'a I,
    table: &Table<M>,
    pilot: &mut Pilot<C>,
    keys: &'k [K],
    take: &mut impl FnMut(&'k K, Option<I::Item<'a>>),
) {
    let mut hashes = [0; AHEAD];
    for (hash, key) in hashes.iter_mut().zip(keys) {
        *hash = index.hash(key.borrow());
        table.prefetch(*hash);
    }
    for (hash, key) in hashes.into_iter().zip(keys) {
        take(key, through(index, table, pilot, key.borrow(), hash));
    }
}
