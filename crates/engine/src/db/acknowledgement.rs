//! [`Acknowledgement`]: whether each write waits until it is durable, or many wait together.

use super::database::Db;
use crate::core::Shared;
use crate::error::Result;
use crate::log::Position;
use crate::options::Durability;

/// When the writes of a handle are as durable as the database's [`crate::Durability`] demands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Acknowledgement {
    /// When they return.
    #[default]
    Each,
    /// At the next [`Db::commit`].
    Together,
}

impl Acknowledgement {
    /// Ends a write whose record ends at `position`.
    #[inline]
    pub fn give(self, shared: &Shared, position: Position) -> Result<()> {
        match self {
            Self::Each => shared.acknowledge(position),
            Self::Together => Ok(()),
        }
    }

    /// Makes what was read as durable as if the caller had written it, because its result depends on it.
    pub fn give_for_seen(self, shared: &Shared) -> Result<()> {
        let segment = shared.log.active_segment();
        self.give(shared, Position { segment: segment.id, offset: segment.published() })
    }
}

impl Db {
    /// The same database, whose keyspaces, batches and transactions do not wait: a write returns when it is in the log
    /// and everybody sees it, and becomes as durable as the [`crate::Durability`] of the database demands with the next
    /// [`Db::commit`]. So a server that has read many requests waits once for all of them.
    ///
    /// Until then a crash may take such writes away, the newest ones first, as with [`crate::Durability::Buffered`].
    /// A write by another handle that waits makes all earlier ones durable, too.
    pub fn deferred(&self) -> Self {
        self.with_acknowledgement(Acknowledgement::Together)
    }

    /// The durability that the database was opened with.
    pub fn durability(&self) -> Durability {
        self.shared().settings.durability
    }

    /// Makes all writes so far as durable as the [`crate::Durability`] of the database demands: one sync for
    /// [`crate::Durability::Sync`], one write for [`crate::Durability::Process`], nothing for the others. Calls at the
    /// same time share syncs. [`Db::persist`] makes them survive a power cut under any durability.
    ///
    /// # Errors
    /// After a failed sync the database takes no more writes ([`Db::health`]), and it is not known which writes since
    /// the last commit survive.
    pub fn commit(&self) -> Result<()> {
        let shared = self.shared();
        shared.check_open()?;
        Acknowledgement::Each.give_for_seen(shared)
    }
}
