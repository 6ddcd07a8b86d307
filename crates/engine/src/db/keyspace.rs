//! [`Keyspace`]: a named set of items.

use std::sync::Arc;

use alluvium_model::Plan;

use super::acknowledgement::Acknowledgement;
use super::close::Handle;
use crate::compact::decision;
use crate::core::{KeyspaceShared, Shared};
use crate::error::Result;
use crate::hash_key::HashKey;
use crate::log::Position;
use crate::manifest::PlanSource;
use crate::order::Order;

/// A named set of items with an order and a plan of its own. Cheap to clone; all clones are the same keyspace.
///
/// Keys have 0 bytes to 64 KiB, values 0 bytes to 64 MiB. A key and value that together do not fit in half a page
/// (about 2,000 bytes) are stored in blob files; reading them costs one more read.
#[derive(Debug, Clone)]
pub struct Keyspace {
    pub(super) handle: Arc<Handle>,
    pub(super) acknowledgement: Acknowledgement,
    pub(crate) shared: Arc<KeyspaceShared>,
}

impl Keyspace {
    /// The name it was created under.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Its plan: the one it was created with, or the last that it was given since ([`Keyspace::change_plan`]), as the
    /// engine executes it ([`Plan::executed`]). Older tables may still be stored as an earlier plan demanded.
    pub fn plan(&self) -> Plan {
        self.shared.plan_state().plan.clone().into()
    }

    /// Its plan if that was given for this keyspace alone ([`KeyspaceOptions::plan`](crate::KeyspaceOptions::plan),
    /// [`Keyspace::change_plan`]); `None` if the plan is the database's or was chosen for its data.
    pub fn own_plan(&self) -> Option<Plan> {
        let state = self.shared.plan_state();
        (state.source == PlanSource::Own).then(|| state.plan.clone().into())
    }

    /// The order it was created with.
    pub fn order(&self) -> Order {
        Order::of(&self.shared.hasher)
    }

    /// The secret key of its hash function; `None` if the function has none. Other databases can share it
    /// ([`KeyspaceOptions::with_hash_key`](crate::KeyspaceOptions::with_hash_key)).
    pub fn hash_key(&self) -> Option<HashKey> {
        HashKey::of(&self.shared.hasher)
    }

    /// Number of items, estimated from above: a key that was overwritten or removed recently counts once for each level
    /// that still contains it. Costs nothing; [`Keyspace::count`] is exact.
    pub fn approximate_len(&self) -> u64 {
        self.shared.version.load().items()
    }

    /// What the policy of merges would merge next, and what its choice depends on. For tests that replay it.
    #[doc(hidden)]
    pub fn merge_decision(&self) -> alluvium_model::policy::Decision {
        decision(self.database(), &self.shared)
    }

    pub(super) fn database(&self) -> &Shared {
        &self.handle.shared
    }

    /// Ends a write whose record ends at `position`.
    #[inline]
    pub(super) fn acknowledge(&self, position: Position) -> Result<()> {
        self.acknowledgement.give(self.database(), position)
    }
}
