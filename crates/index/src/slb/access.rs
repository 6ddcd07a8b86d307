//! One lookup, for buffers of either mode.

use super::clock::Clock;
use super::lookup::Lookup;
use super::mode::Mode;
use super::pilot::Pilot;
use super::table::{Outcome, Table, Ticket};

/// Looks `key` up through the table.
#[inline(always)]
pub(super) fn through<'a, I: Lookup, M: Mode, C: Clock>(
    index: &'a I,
    table: &Table<M>,
    pilot: &mut Pilot<C>,
    key: &I::Key,
    hash: u64,
) -> Option<I::Item<'a>> {
    pilot.count_through();
    let is_sampled = pilot.is_sampled();
    match table.find(hash, |reference| index.resolve(key, reference)) {
        Outcome::Hit(item, way) => {
            if is_sampled {
                table.count_hit(hash, way, pilot.draw());
            }
            Some(item)
        }
        Outcome::Miss(ticket) => {
            pilot.count_miss();
            if is_sampled {
                pilot.draw();
            }
            let (reference, item) = index.search_hashed(key, hash)?;
            if is_sampled || ticket.is_some_and(Ticket::has_room) {
                consider(table, pilot, hash, ticket, is_sampled, reference);
            }
            Some(item)
        }
    }
}

/// Caches the item that the index returned, if there is room or it is hot.
#[inline(never)]
fn consider<M: Mode, C: Clock>(
    table: &Table<M>,
    pilot: &mut Pilot<C>,
    hash: u64,
    ticket: Option<Ticket>,
    is_sampled: bool,
    reference: super::Reference,
) {
    let Some(ticket) = ticket else { return };
    let is_wanted = ticket.has_room()
        || is_sampled && {
            pilot.count_logged();
            table.log_miss(hash)
        };
    if is_wanted && table.emit(ticket, hash, reference) {
        pilot.count_emission();
    }
}
