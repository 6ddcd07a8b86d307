//! [`DatabaseNumber`]: which database a client has selected.

use std::fmt;

/// Number of a database, from 0 to 15.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseNumber(u8);

impl DatabaseNumber {
    /// How many databases there are.
    pub const COUNT: usize = 16;

    /// The database that a client uses unless it selects another.
    pub const FIRST: Self = Self(0);

    /// The number `number`; `None` if there is no such database.
    pub fn new(number: i64) -> Option<Self> {
        (0..Self::COUNT as i64).contains(&number).then_some(Self(number as u8))
    }

    /// All numbers, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT as u8).map(Self)
    }

    /// The number, as a position in an array of [`DatabaseNumber::COUNT`] databases.
    pub fn position(self) -> usize {
        self.0.into()
    }
}

impl fmt::Display for DatabaseNumber {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}
