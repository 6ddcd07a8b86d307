//! What the simulation counts.

/// What a seed did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Operations.
    pub operations: u64,
    /// Crashes.
    pub crashes: u64,
    /// Gets that found an item, in the first look after a crash.
    pub survived: u64,
    /// Gets that found none where one had been set.
    pub lost: u64,
    /// Items that came to blocks, items that were promoted, and blocks that were copied.
    pub packed: u64,
    /// See [`packed`](Self::packed).
    pub promoted: u64,
    /// See [`packed`](Self::packed).
    pub copied: u64,
}

impl Summary {
    /// Adds what another seed did.
    pub fn add(&mut self, other: Self) {
        for (sum, number) in [
            (&mut self.operations, other.operations),
            (&mut self.crashes, other.crashes),
            (&mut self.survived, other.survived),
            (&mut self.lost, other.lost),
            (&mut self.packed, other.packed),
            (&mut self.promoted, other.promoted),
            (&mut self.copied, other.copied),
        ] {
            *sum += number;
        }
    }
}
