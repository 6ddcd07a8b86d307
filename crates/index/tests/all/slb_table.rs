//! The lookaside buffer's table alone: what a line keeps, and which tickets and updates count.

use alluvium_index::slb::{Outcome, Table};

fn hash(number: u64) -> u64 {
    number << 16 | number
}

fn found(table: &Table, number: u64) -> Option<u64> {
    match table.find(hash(number), Some) {
        Outcome::Hit(reference, _) => Some(reference.number()),
        Outcome::Miss(_) => None,
    }
}

fn emit(table: &Table, number: u64, reference: u32) -> bool {
    match table.find(hash(number), |_| None::<()>) {
        Outcome::Miss(Some(ticket)) => table.emit(ticket, hash(number), reference.into()),
        _ => false,
    }
}

#[test]
fn a_line_keeps_seven_and_gives_up_the_coldest() {
    let table = Table::new(64, 64);
    assert_eq!((table.capacity(), table.count_entries()), (7, 0));
    for number in 1..=7 {
        assert!(emit(&table, number, number as u32));
    }
    assert_eq!(table.count_entries(), 7);
    for number in [1, 2, 3, 5, 6, 7] {
        for times in 1..=3 {
            let Outcome::Hit(_, way) = table.find(hash(number), Some) else { panic!("it is there") };
            assert_eq!(table.hits(hash(number), way), times);
            table.count_hit(hash(number), way, times);
        }
    }
    assert!(emit(&table, 9, 90));
    assert_eq!(found(&table, 4), None);
    for number in [1, 2, 3, 5, 6, 7] {
        assert_eq!(found(&table, number), Some(number));
    }
    assert_eq!(found(&table, 9), Some(90));
    // The newest entry is now the coldest.
    assert!(emit(&table, 10, 100));
    assert_eq!((found(&table, 9), found(&table, 10)), (None, Some(100)));
}

#[test]
fn a_miss_is_wanted_the_fourth_time_in_the_log() {
    let table = Table::new(64, 64);
    let wanted: Vec<bool> = (0..5).map(|_| table.log_miss(hash(3))).collect();
    assert_eq!(wanted, [false, false, false, true, true]);
    assert!(!table.log_miss(hash(4)));
}

#[test]
fn a_ticket_lapses_with_a_change_in_its_line() {
    let table = Table::new(64, 64);
    let Outcome::Miss(Some(ticket)) = table.find(hash(1), Some) else { panic!("the table is empty") };
    assert!(ticket.has_room());
    let change = table.change(hash(2));
    assert!(!table.emit(ticket, hash(1), 1.into()));
    assert!(matches!(table.find(hash(1), Some), Outcome::Miss(None)));
    drop(change);
    assert!(!table.emit(ticket, hash(1), 1.into()));
    assert!(emit(&table, 1, 1));
}

#[test]
fn an_update_follows_an_item_that_is_cached_and_no_other() {
    let table = Table::new(64, 64);
    table.change(hash(1)).update(5.into());
    assert_eq!(found(&table, 1), None);
    assert!(emit(&table, 1, 5));
    table.change(hash(1)).update(6.into());
    assert_eq!(found(&table, 1), Some(6));
    let outer = table.change(hash(1));
    assert_eq!(found(&table, 1), None);
    // Of two simultaneous changes it is unknown which was the last.
    table.change(hash(1)).update(7.into());
    outer.update(8.into());
    assert_eq!((found(&table, 1), table.count_entries()), (None, 0));
}

#[test]
fn a_lookup_beside_a_change_counts_only_before_it() {
    let table = Table::new(64, 64);
    assert!(emit(&table, 1, 5));
    let outcome = table.find(hash(1), |reference| {
        drop(table.change(hash(1)));
        Some(reference)
    });
    assert!(matches!(outcome, Outcome::Miss(None)));
}

#[test]
fn seventy_nested_changes_retire_their_line_and_block_nobody() {
    let table = Table::new(64, 64);
    assert!(emit(&table, 1, 5));
    let changes: Vec<_> = (0..70).map(|number| table.change(hash(number + 10))).collect();
    assert_eq!(found(&table, 1), None);
    drop(changes);
    assert!(!emit(&table, 1, 5));
    assert_eq!(table.count_entries(), 0);
}
