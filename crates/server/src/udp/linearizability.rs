//! Whether what clients have seen of one key is what they can see of a register, after Wing and Gong ("Testing and
//! Verifying Concurrent Objects", 1993): there must be an order of all operations, each at a moment between its begin
//! and its end, in which each read returns what was written last. States that were tried are remembered, as by Lowe.

use std::collections::HashSet;

/// Number of a value; 0 if there is none.
pub(super) type Value = u32;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Read(Value),
    Write(Value),
}

/// One operation on the key, with the moments of its begin and end. No two moments are equal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed {
    pub action: Action,
    pub begun: u64,
    pub ended: u64,
    /// Whether it has happened. If not it may have: it is another copy of a write.
    pub is_certain: bool,
}

/// Maximum number of operations in a history.
pub(super) const OBSERVED_MAX: usize = 128;

/// Whether the operations have such an order, where the key had no value at first.
///
/// # Panics
/// When there are more than [`OBSERVED_MAX`].
pub(super) fn is_linearizable(history: &[Observed]) -> bool {
    assert!(history.len() <= OBSERVED_MAX, "{} operations", history.len());
    Search { history, tried: HashSet::new() }.continues(0, 0)
}

struct Search<'a> {
    history: &'a [Observed],
    /// Sets of operations that came first, with the value after them, from which there is no way to the end.
    tried: HashSet<(u128, Value)>,
}

impl Search<'_> {
    /// Whether the operations that are not in the set `done`, after which the key has this value, have an order.
    fn continues(&mut self, done: u128, value: Value) -> bool {
        let left = || self.history.iter().enumerate().filter(|(number, _)| done & (1 << number) == 0);
        let certain = left().filter(|(_, observed)| observed.is_certain);
        let Some(first_end) = certain.map(|(_, observed)| observed.ended).min() else { return true };
        let is_done = |(number, _): &(usize, &Observed)| done & (1 << number) != 0;
        let last_begin =
            self.history.iter().enumerate().filter(is_done).map(|(_, observed)| observed.begun).max();
        // One that has begun after another's end comes after it.
        let may_be_next = |observed: &Observed| {
            observed.begun < first_end && last_begin.is_none_or(|begun| begun < observed.ended)
        };
        let next: Vec<(usize, Observed)> = left()
            .filter(|(_, observed)| may_be_next(observed))
            .map(|(number, observed)| (number, *observed))
            .collect();
        // A read that fits changes nothing, so it may come at once, unless a copy would then come too late.
        let copies_end =
            left().filter(|(_, observed)| !observed.is_certain).map(|(_, observed)| observed.ended).min();
        let comes_at_once = |(_, observed): &&(usize, Observed)| {
            observed.action == Action::Read(value) && copies_end.is_none_or(|end| observed.begun < end)
        };
        if let Some((number, _)) = next.iter().find(comes_at_once) {
            return self.continues(done | 1 << number, value);
        }
        if !self.tried.insert((done, value)) {
            return false;
        }
        let mut copied = HashSet::new();
        next.iter().any(|(number, observed)| {
            let after = done | 1 << number;
            match observed.action {
                Action::Read(read) => read == value && self.continues(after, value),
                Action::Write(written) if observed.is_certain => self.continues(after, written),
                // One copy is as good as another, and it only matters if a read returns its value next.
                Action::Write(written) => {
                    let mut reads =
                        next.iter().filter(|(_, observed)| observed.action == Action::Read(written));
                    copied.insert(written)
                        && reads.any(|(read, _)| self.continues(after | 1 << read, written))
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value, begun: u64, ended: u64) -> Observed {
        Observed { action: Action::Read(value), begun, ended, is_certain: true }
    }

    fn write(value: Value, begun: u64, ended: u64) -> Observed {
        Observed { action: Action::Write(value), begun, ended, is_certain: true }
    }

    #[test]
    fn what_a_register_does_is_accepted() {
        assert!(is_linearizable(&[]));
        assert!(is_linearizable(&[read(0, 0, 1), write(1, 2, 3), read(1, 4, 5)]));
        // While a write is under way, reads may return either value, but not the former one after the new one.
        assert!(is_linearizable(&[write(1, 0, 9), read(0, 1, 2), read(1, 3, 4), read(1, 5, 6)]));
        assert!(is_linearizable(&[write(1, 0, 9), write(2, 1, 8), read(2, 10, 11)]));
        assert!(is_linearizable(&[write(1, 0, 9), write(2, 1, 8), read(1, 10, 11)]));
        assert!(is_linearizable(&[write(1, 0, 5), write(2, 1, 6), read(1, 2, 3), read(2, 7, 8)]));
    }

    #[test]
    fn what_no_register_does_is_found() {
        assert!(!is_linearizable(&[read(1, 0, 1)]));
        assert!(!is_linearizable(&[write(1, 0, 1), read(0, 2, 3)]));
        assert!(!is_linearizable(&[write(1, 0, 9), read(1, 1, 2), read(0, 3, 4)]));
        assert!(!is_linearizable(&[write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)]));
        // Two readers see two concurrent writes in different orders.
        let reads = [read(1, 10, 11), read(2, 12, 13), read(1, 14, 15)];
        assert!(!is_linearizable(&[&[write(1, 0, 9), write(2, 1, 8)][..], &reads[..]].concat()));
    }

    #[test]
    fn another_copy_of_a_write_may_come_until_its_end() {
        let copy = |ended| Observed { is_certain: false, ..write(1, 0, ended) };
        let story = [write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)];
        assert!(is_linearizable(&[&story[..], &[copy(9)][..]].concat()));
        assert!(!is_linearizable(&[&story[..], &[copy(1)][..]].concat()));
        // A read does not come at once if a copy has to come before it.
        let copies = [copy(7), Observed { is_certain: false, ..write(2, 2, 20) }];
        let both = [write(1, 0, 1), write(2, 2, 3), read(2, 4, 30), read(1, 5, 6), read(2, 8, 9)];
        assert!(is_linearizable(&[&both[..], &copies[..]].concat()));
        let read_again = [write(1, 0, 1), write(2, 2, 3), read(2, 4, 5)];
        assert!(is_linearizable(&[&read_again[..], &[copy(9)][..]].concat()));
    }
}
