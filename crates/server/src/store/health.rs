//! [`StoreHealth`]: whether a store takes writes.

/// Whether a store takes writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreHealth {
    /// It does.
    Healthy,
    /// It does, and background work fails and is tried again automatically.
    Retrying {
        /// The latest failure.
        reason: String,
    },
    /// It was opened for reading only.
    ReadOnly,
    /// It takes none since a failure.
    Failed {
        /// The first failure.
        reason: String,
        /// Whether [`Store::resume`](super::Store::resume) may help.
        resumable: bool,
    },
}
