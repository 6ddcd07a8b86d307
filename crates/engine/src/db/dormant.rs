//! Dormant keyspaces: those of an opened database whose tables have not been needed yet.
//!
//! Opening a database with thousands of keyspaces opens no table: a keyspace is *dormant* until a user asks for its
//! handle, its log is converted, or an operation needs all data. Until then its version shows its log and no tables.
//! Nothing reads, merges or changes the content of its tables, so the manifest's description of them stays valid. When
//! the merging thread has nothing better to do, it opens the rest.

use std::sync::Arc;

use alluvium_base::KeyspaceId;
use alluvium_io::sync::atomic::Ordering;

use crate::compact::pressure_of;
use crate::core::{KeyspaceShared, Shared, new_log_store};
use crate::error::Result;
use crate::level::{Levels, Version};

impl KeyspaceShared {
    /// Whether its tables are not open yet.
    #[inline]
    pub fn is_dormant(&self) -> bool {
        self.dormant.load(Ordering::Acquire)
    }

    /// Sets whether it has tables that are not open yet.
    pub fn set_dormant(&self, dormant: bool) {
        self.dormant.store(dormant, Ordering::Release);
    }
}

impl Shared {
    /// Opens the keyspace's tables unless they are open. The caller holds no lock that comes after `convert_lock` and
    /// `merge_lock` in the lock order.
    ///
    /// # Errors
    /// If a table is missing, damaged or cannot be opened now. The keyspace stays dormant, and the next call tries
    /// again.
    pub fn open_tables_of(&self, keyspace: &Arc<KeyspaceShared>) -> Result<()> {
        if !keyspace.is_dormant() {
            return Ok(());
        }
        let _only_one = keyspace.waking.lock().expect("no panic while held");
        if !keyspace.is_dormant() {
            return Ok(());
        }
        let state = {
            let manifest = self.manifest.lock().expect("no panic while held");
            manifest.state().keyspaces.get(&keyspace.id).cloned()
        };
        // If there is no state, the keyspace was dropped meanwhile.
        let Some(state) = state else { return Ok(()) };
        let opened = Levels::open(&self.reclaimer, keyspace.id, &state.body)?;
        let with_tables = |version: &Version| Version { body: version.body.over(&opened), ..version.clone() };
        let _no_freeze = self.freeze_lock.lock().expect("no panic while held");
        if keyspace.check_present().is_err() {
            return Ok(());
        }
        let version = with_tables(&keyspace.version.load());
        let active = version.active().clone();
        let plan = version.body.plan();
        let items = plan.items_sharded(version.items(), self.settings.expected_items);
        let entries_max = self.memory.budget().log_entries_max;
        let fresh =
            new_log_store(plan, keyspace.hasher, active.segment.clone(), items, 0, (entries_max, true));
        let is_chained = active.linked().is_some();
        let no_writers: Vec<_> = active.shards().iter().map(|shard| shard.lock()).collect();
        let is_outgrown = !is_chained && active.len() == 0 && fresh.shard_bits() != active.shard_bits();
        let fresh = is_outgrown.then(|| Arc::new(fresh));
        if is_outgrown {
            active.close();
        }
        keyspace.update_version(|version| {
            let mut next = with_tables(version);
            if let Some(fresh) = &fresh {
                next.log_stores[0] = fresh.clone();
            }
            next
        });
        drop(no_writers);
        keyspace.set_dormant(false);
        if self.dormant_keyspaces.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.reclaimer.drop_directories();
        }
        if state.body.plan.is_moving() {
            keyspace.inherited_pressure.set(pressure_of(self, keyspace));
        }
        Ok(())
    }

    /// All keyspaces, with their tables open: for operations on all data.
    pub fn opened_keyspaces(&self) -> Result<Vec<Arc<KeyspaceShared>>> {
        let keyspaces = self.all_keyspaces();
        keyspaces.iter().try_for_each(|keyspace| self.open_tables_of(keyspace))?;
        Ok(keyspaces)
    }

    /// Opens the tables of one more keyspace; returns `false` if all are open. A keyspace whose tables cannot be opened
    /// is skipped: users of it get the error.
    pub fn open_next_tables(&self) -> bool {
        while self.dormant_keyspaces.load(Ordering::Acquire) > 0 {
            // If the memory limit leaves no room, keyspaces stay dormant until they are used.
            if self.memory.index.table_bytes() > self.memory.index.bytes_max() / 2 {
                return false;
            }
            let from = KeyspaceId(self.waking_from.load(Ordering::Relaxed));
            let keyspaces = self.all_keyspaces();
            let dormant = keyspaces.iter().find(|keyspace| keyspace.id >= from && keyspace.is_dormant());
            let Some(keyspace) = dormant else { return false };
            self.waking_from.store(keyspace.id.next().0, Ordering::Relaxed);
            if self.open_tables_of(keyspace).is_ok() {
                return true;
            }
        }
        false
    }
}
