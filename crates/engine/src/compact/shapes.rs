//! Levels as the policy of merges sees them: units of the youngest level, and containers of the levels below.

use alluvium_model::policy::{Shape, staggered};

use crate::core::KeyspaceShared;
use crate::level::{Container, Level, MergeUnit, PlacedTable};

/// Units of the youngest level, as the policy sees them.
pub(super) struct Units<'a>(pub &'a [MergeUnit]);

impl Shape for Units<'_> {
    fn places(&self) -> usize {
        self.0.len()
    }

    fn runs(&self, place: usize) -> f64 {
        f64::from(self.0[place].runs)
    }

    fn items(&self, place: usize) -> f64 {
        self.0[place].items as f64
    }

    fn bytes(&self, place: usize) -> f64 {
        self.0[place].bytes as f64
    }

    fn obsolete(&self, place: usize) -> f64 {
        self.0[place].garbage
    }

    fn span(&self, place: usize) -> f64 {
        0.5f64.powi(self.0[place].bits as i32)
    }

    /// A plan's youngest level is never its last.
    fn runs_full(&self, _: usize, runs_max: u32) -> f64 {
        f64::from(runs_max)
    }
}

/// How containers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Hashes are uniform, and the size of a container is its share of the hash space.
    Hashed,
    /// Containers were cut to hold equal amounts, regardless of their share of the hash space.
    SemiSorted,
}

impl Order {
    pub fn of(keyspace: &KeyspaceShared) -> Self {
        if keyspace.hasher.is_semi_sorted() { Self::SemiSorted } else { Self::Hashed }
    }
}

/// Containers of a level, as the policy sees them.
pub(super) struct Containers<'a> {
    pub level: &'a Level,
    pub order: Order,
}

impl Shape for Containers<'_> {
    fn places(&self) -> usize {
        self.level.containers().len()
    }

    fn runs(&self, place: usize) -> f64 {
        self.level.containers()[place].tables.len() as f64
    }

    fn items(&self, place: usize) -> f64 {
        self.level.containers()[place].items()
    }

    fn bytes(&self, place: usize) -> f64 {
        self.level.containers()[place].bytes()
    }

    fn obsolete(&self, place: usize) -> f64 {
        obsolete_in(&self.level.containers()[place])
    }

    fn span(&self, place: usize) -> f64 {
        match self.order {
            Order::Hashed => self.level.containers()[place].span(),
            Order::SemiSorted => 1.0 / self.places() as f64,
        }
    }

    fn runs_full(&self, place: usize, runs_max: u32) -> f64 {
        let low = self.level.containers()[place].range.low;
        f64::from(staggered(runs_max, (low >> 64) as u64 ^ low as u64))
    }

    fn items_of_level(&self) -> f64 {
        self.level.items() as f64
    }
}

/// Obsolete versions, in the container or below it, that are hidden by items there.
pub(super) fn obsolete_in(container: &Container<PlacedTable>) -> f64 {
    let of_table = |table: &PlacedTable| table.items_within(container.range) * table.repeats;
    container.tables.iter().map(of_table).sum()
}
