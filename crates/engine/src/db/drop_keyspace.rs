//! Dropping keyspaces.

use std::sync::Arc;

use super::database::Db;
use crate::blob::ReferenceCounts;
use crate::error::Result;
use crate::level::Version;
use crate::manifest::Edit;

impl Db {
    /// Removes the keyspace of this name with all its items; returns `false` if there is none. The name may be used
    /// again at once, for another keyspace.
    ///
    /// Costs a record in the manifest, independent of the size. The space is freed at once, or when the last snapshot
    /// of the keyspace is dropped. Handles of the keyspace return [`crate::Error::KeyspaceDropped`] from then on.
    /// Survives a power cut when this returns, and so do all earlier writes.
    pub fn drop_keyspace(&self, name: &str) -> Result<bool> {
        let shared = self.shared();
        shared.check_refusal()?;
        if let Some(keyspace) = shared.all_keyspaces().iter().find(|keyspace| keyspace.name == name) {
            // The space of tables that cannot be opened is freed at the next opening.
            let _ = shared.open_tables_of(keyspace);
        }
        let _no_conversion = shared.convert_lock.lock().expect("no panic while held");
        let _no_merge = shared.merge_lock.lock().expect("no panic while held");
        let _no_freeze = shared.freeze_lock.lock().expect("no panic while held");
        let Some(keyspace) = shared.all_keyspaces().into_iter().find(|keyspace| keyspace.name == name) else {
            return Ok(false);
        };
        // The manifest's record must not survive a crash that loses earlier writes to other keyspaces.
        shared.log.commit_all()?;
        shared.append_edits(&[Edit::DropKeyspace { keyspace: keyspace.id }])?;
        let before = keyspace.version.load_full();
        {
            let _no_writers: Vec<_> = before.active().shards().iter().map(|shard| shard.lock()).collect();
            keyspace.set_dropped();
            before.active().close();
        }
        let mut references = ReferenceCounts::default();
        for (&file, &bytes) in &before.blobs.live {
            references.take(file, bytes);
        }
        for store in &before.log_stores {
            // The keyspace is gone already, even if something fails from here on. Blob bytes that are not counted now
            // are counted at the next opening.
            references.take_all(&store.references().unwrap_or_default());
        }
        shared.scan_cache.forget(keyspace.id);
        {
            // Otherwise a change in progress could return files to a version from which they would never be removed.
            let _files_stay = shared.blobs.hold_files();
            shared.keyspaces.write().expect("no panic while held").retain(|other| other.id != keyspace.id);
            keyspace.update_version(|version| Version {
                log_stores: vec![version.active().clone()],
                chain: None,
                body: version.body.emptied(),
                blobs: Arc::default(),
                epoch: version.epoch,
            });
        }
        shared.blobs.count_losses(&references);
        shared.drop_chain_files(&before);
        before.body.give_back(|file| shared.is_file_named(file));
        Ok(true)
    }
}
