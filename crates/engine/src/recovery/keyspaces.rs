//! The keyspaces of an opened database: their descriptions are known at once, their tables are opened at first use.

use std::sync::Arc;

use alluvium_base::KeyspaceId;
use alluvium_model::ChainedSpec;

use super::replay::Replayed;
use crate::blob::{Blobs, VersionBlobs};
use crate::chained::Chain;
use crate::core::{KeyspaceShared, check_plan, linked_store, new_log_store};
use crate::error::Result;
use crate::level::{Levels, Version};
use crate::log::{Log, LogStore};
use crate::manifest::{KeyspaceState, PlanState};

/// Whether new records have links, as in [`Version::goes_on_chained`].
fn goes_on_chained(chain: &Chain, plan: &PlanState) -> bool {
    let is_alike = |spec: &ChainedSpec| chain.directory.suits(spec);
    plan.plan.log.chained.as_ref().is_some_and(is_alike) || chain.files.len() > 1
}

/// A keyspace with its items in the log. If it has tables, it is dormant: see [`Levels::open`].
pub(super) fn open(
    id: KeyspaceId,
    state: &KeyspaceState,
    log: &Log,
    blobs: &Blobs,
    replayed: &Replayed,
    chain: Option<(Chain, u64)>,
    (expected_items, entries_max): (u64, u64),
) -> Result<Arc<KeyspaceShared>> {
    check_plan(&state.body.plan.plan, &state.hasher)?;
    let blobs = Arc::new(VersionBlobs { files: blobs.files(), live: state.blob_references.clone() });
    let items = state.body.plan.plan.items_sharded(0, expected_items);
    let active = match &chain {
        Some((chain, slots)) if goes_on_chained(chain, &state.body.plan) => {
            linked_store(chain, state.hasher, log.active_segment(), *slots, entries_max)
        }
        _ => {
            let plan = &state.body.plan.plan;
            new_log_store(plan, state.hasher, log.active_segment(), items, 0, (entries_max, true))
        }
    };
    let chain = chain.map(|(chain, _)| Arc::new(chain));
    let stores = replayed.stores.get(&id).map(Vec::as_slice).unwrap_or_default();
    let frozen = stores.iter().rev().cloned();
    let frozen = frozen.inspect(|store: &Arc<LogStore>| debug_assert!(store.is_closed()));
    let log_stores = std::iter::once(Arc::new(active)).chain(frozen).collect();
    let version = Version { log_stores, chain, body: Levels::new(state.body.plan.clone()), blobs, epoch: 0 };
    let keyspace = KeyspaceShared::new(id, state.name.clone(), state.hasher, version);
    keyspace.set_dormant(!state.body.is_empty());
    Ok(Arc::new(keyspace))
}
