//! What clients ask for that takes long: backups, checks, and changes of the version that is served.

use crate::answer::Finding;
use crate::chores::{Chore, VersionChange};
use crate::shared::Shared;
use crate::store::StoreError;

/// Does what a client waits for.
pub(crate) fn execute(chore: Chore, shared: &Shared) -> Result<Finding, StoreError> {
    let store = &*shared.store;
    match chore {
        Chore::Save => {
            let changes = store.changes();
            let outcome = match &shared.options.save_directory {
                Some(directory) => store.back_up(directory, Some(shared.options.saves_kept)),
                None => Err("the server was started without a directory for saves".into()),
            };
            shared.saves.end(outcome.is_ok().then_some(changes));
            match &outcome {
                Ok(_) => tracing::info!("the database was saved"),
                Err(error) => tracing::error!(%error, "the database was not saved"),
            }
            outcome.map(|_| Finding::Done)
        }
        Chore::Verify => Ok(Finding::Report(store.verify()?)),
        Chore::BackUp(directory) => Ok(Finding::Report(store.back_up(&directory, None)?)),
        Chore::Version(change) => {
            let versions = store.versions().ok_or("this server serves no versions")?;
            Ok(Finding::Report(match change {
                VersionChange::List => versions.list()?,
                VersionChange::Swap(number) => versions.swap(number)?,
                VersionChange::RollBack => versions.roll_back()?,
            }))
        }
    }
}
