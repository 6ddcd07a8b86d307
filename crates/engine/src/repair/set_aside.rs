//! Keeps damaged files under names that a database ignores.

use alluvium_io::{OpenMode, Storage};

use super::report::ManifestRepair;
use crate::error::{IoContext, Result};
use crate::manifest::{CURRENT, read_all};

/// Prefix of these names: `lost-1-table-00000007` is of the directory's first repair.
const PREFIX: &str = "lost-";

/// Gives `files` such names, or removes them. Returns the new names. Files that no longer exist are skipped.
pub(super) fn set_aside(storage: &dyn Storage, files: Vec<String>, discard: bool) -> Result<Vec<String>> {
    let mut kept = Vec::new();
    let number = next_number(storage)?;
    let present = storage.list().context(|| "listing the database directory".to_owned())?;
    for name in files.into_iter().filter(|name| present.contains(name)) {
        if discard {
            storage.remove(&name).context(|| format!("removing {name}"))?;
        } else {
            let aside = format!("{PREFIX}{number}-{name}");
            storage.rename(&name, &aside).context(|| format!("setting {name} aside"))?;
            kept.push(aside);
        }
    }
    storage.sync_directory().context(|| "syncing the database directory".to_owned())?;
    Ok(kept)
}

/// Copies a `CURRENT` that cannot be read: the new one takes its name in the step that makes the repair count.
pub(super) fn keep_current(
    storage: &dyn Storage,
    manifest: ManifestRepair,
    discard: bool,
) -> Result<Option<String>> {
    let present = storage.list().context(|| "listing the database directory".to_owned())?;
    if discard || manifest == ManifestRepair::Sound || !present.iter().any(|name| name == CURRENT) {
        return Ok(None);
    }
    // If it cannot be read at all, nothing is lost: its only line is the name of the manifest.
    let Ok(content) = read_all(storage, CURRENT) else { return Ok(None) };
    let aside = format!("{PREFIX}{}-{CURRENT}", next_number(storage)?);
    let context = || format!("writing {aside}");
    let file = storage.open(&aside, OpenMode::Create).context(context)?;
    file.write_at(&content, 0).context(context)?;
    file.sync().context(context)?;
    Ok(Some(aside))
}

/// A number that no earlier repair used.
fn next_number(storage: &dyn Storage) -> Result<u64> {
    let names = storage.list().context(|| "listing the database directory".to_owned())?;
    let number = |name: &String| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u64>().ok();
    Ok(names.iter().filter_map(number).max().unwrap_or(0) + 1)
}
