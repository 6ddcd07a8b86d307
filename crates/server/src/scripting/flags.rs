//! [`Flags`]: what a script or a function says about itself.

/// A set of flags. Only `no-writes` changes anything here: there are no replicas and clusters, and the store itself
/// refuses writes when it has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    /// In the order in which they are shown; each is the bit of its position.
    const NAMES: [&str; 5] = ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];

    /// Adds the flag of this name, in any case. Returns `false` if there is none.
    pub(super) fn add(&mut self, name: &[u8]) -> bool {
        let position = Self::NAMES.iter().position(|known| known.as_bytes().eq_ignore_ascii_case(name));
        self.0 |= position.map_or(0, |position| 1 << position);
        position.is_some()
    }

    /// Whether the script may write.
    pub(crate) fn writes(self) -> bool {
        self.0 & 1 == 0
    }

    pub(crate) fn names(self) -> impl ExactSizeIterator<Item = &'static str> {
        let names = Self::NAMES.iter().enumerate().filter(move |(position, _)| self.0 & 1 << position != 0);
        names.map(|(_, name)| *name).collect::<Vec<_>>().into_iter()
    }
}
