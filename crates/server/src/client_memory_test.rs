//! The rule of the account: charging, waiting, leaving.

use super::*;

const PATIENCE: Duration = Duration::from_secs(1);

#[test]
fn bytes_are_charged_up_to_the_bound() {
    let memory = ClientMemory::new(BYTES_MIN, PATIENCE);
    assert!(memory.has_room() && memory.try_charge(BYTES_MIN / 2) && memory.has_room());
    assert!(memory.try_charge(BYTES_MIN / 2) && !memory.has_room());
    assert!(!memory.try_charge(1) && !memory.is_exceeded());
    memory.charge(1);
    assert!(memory.is_exceeded());
    memory.release(BYTES_MIN / 2 + 1);
    assert!(memory.has_room() && !memory.try_charge(usize::MAX));
}

#[test]
fn one_client_at_a_time_is_favoured() {
    let memory = ClientMemory::new(0, PATIENCE);
    assert!(memory.favours(7) && memory.favours(7) && !memory.favours(8));
    memory.end_favour(8);
    assert!(!memory.favours(8));
    memory.end_favour(7);
    assert!(memory.favours(8) && !memory.favours(7));
    // For a limited time.
    let before = memory.started;
    let memory = ClientMemory { started: before - 2 * memory.favour(), ..memory };
    assert!(!memory.favours(8) && memory.favours(7) && !memory.favours(8));
}

#[test]
fn those_that_hold_much_leave_when_it_is_needed() {
    let memory = ClientMemory::new(8 << 20, PATIENCE);
    memory.relieve(PATIENCE, |_| unreachable!("there is room"));
    // More than all: down to three quarters, beside those that are on their way out.
    memory.charge(9 << 20);
    memory.relieve(Duration::ZERO, |relief| {
        assert_eq!(relief, Relief { bytes: 3 << 20, favoured: NOBODY, yields: false });
        (2, 4 << 20)
    });
    assert!(!memory.is_exceeded() && memory.closed() == 2);
    // Others have waited, but clients were closed just now.
    memory.relieve(PATIENCE, |_| unreachable!("patience"));
    memory.release(4 << 20);
    memory.left(4 << 20);
    assert!(!memory.has_room() && memory.leaving.load(Ordering::Relaxed) == 0);
    let memory = ClientMemory { started: memory.started - 2 * PATIENCE, ..memory };
    assert!(memory.favours(5));
    for (waited, yields) in [(PATIENCE, true), (100 * PATIENCE, false)] {
        memory.relieve(waited, |relief| {
            assert_eq!(relief, Relief { bytes: 1, favoured: 5, yields });
            (0, 0)
        });
    }
}
