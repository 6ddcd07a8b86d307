//! Moves the content of the log into tables.

use std::sync::Arc;

use crate::compact::{convert, merge, pick_of};
use crate::core::{KeyspaceShared, Shared};
use crate::error::Result;

/// Moves everything written to a keyspace so far into its last level.
pub(super) fn settle_older(shared: &Shared, keyspace: &Arc<KeyspaceShared>) -> Result<()> {
    flush(shared)?;
    let work = || -> Result<()> {
        // Runs added meanwhile are younger. There are only as many as freezes, so this ends.
        while let Some(due) = pick_of(keyspace) {
            merge(shared, &due)?;
        }
        Ok(())
    };
    work().map_err(|error| shared.note_failure(error))
}

/// Freezes the log and converts it.
pub(super) fn flush(shared: &Shared) -> Result<()> {
    let has_items = {
        // A freeze in progress has already replaced the stores by empty ones, but not yet passed their segment to
        // conversion.
        let _no_freeze = shared.freeze_lock.lock().expect("no panic while held");
        shared.all_keyspaces().iter().any(|keyspace| keyspace.version.load().active().len() > 0)
    };
    if has_items {
        // Without background threads, or while they stop, `freeze` would wait for a conversion that no thread performs.
        while shared.frozen_count() > 0 && convert(shared).map_err(|error| shared.note_failure(error))? {}
        shared.freeze(shared.log.active_segment().id, false)?;
    }
    while convert(shared).map_err(|error| shared.note_failure(error))? {}
    Ok(())
}

/// Converts segments that would wait until the log is quiet, and gives space of the log back. Returns whether there may
/// be more to do.
pub(super) fn settle_log(shared: &Shared) -> Result<bool> {
    let settle = || Ok(convert(shared)? || shared.give_back_log()?);
    settle().map_err(|error| shared.note_failure(error))
}
