//! Appends to the manifest, rewrites it when it has grown, and handles failures.

use alluvium_io::OpenMode;

use super::current::{CURRENT, Current};
use super::edit::Edit;
use super::file::{CURRENT_NEW, Manifest, encode_record, file_name, invalid, parse};
use crate::error::{Error, IoContext, Result};
use crate::failure::{FailureClass, class_of};

/// A manifest that has grown past this, and past twice its initial size, is rewritten.
const REWRITE_BYTES: u64 = 1 << 20;

impl Manifest {
    /// Appends `edits` as one record that survives a power cut when this returns.
    ///
    /// # Errors
    /// Of class [`FailureClass::Full`] if there was no room: then the record has no effect and may be appended again.
    /// After any other error, only the next opening can find out what is in the file.
    pub fn append(&mut self, edits: &[Edit]) -> Result<()> {
        if self.is_ended {
            return Err(Error::Closed);
        }
        if self.is_broken {
            // A record behind a missing one could not be read.
            return Err(Error::Failed { reason: format!("an earlier write to {} failed", self.file.name()) });
        }
        for edit in edits {
            self.state.apply(edit).map_err(|reason| invalid(self.file.name(), self.end, reason))?;
        }
        // Until the record is durable the state is ahead of the file.
        self.is_broken = true;
        let mut bytes = Vec::new();
        let chain = encode_record(self.chain, edits, &mut bytes);
        if let Err(error) = self.write(&bytes) {
            if class_of(&error) == FailureClass::Full {
                self.undo()?;
                self.is_broken = false;
            }
            return Err(error);
        }
        self.chain = chain;
        self.is_broken = false;
        self.rewrite_when_long()
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let context = || format!("writing {}", self.file.name());
        self.file.write_at(bytes, self.end).context(context)?;
        self.file.sync().context(|| format!("syncing {}", self.file.name()))?;
        self.end += bytes.len() as u64;
        self.bytes_written += bytes.len() as u64;
        Ok(())
    }

    /// Takes back a record for which there was no room: the state is again that of the file. No write was reported as
    /// complete, so the file has at most a part of the record, and no checksum fits that.
    fn undo(&mut self) -> Result<()> {
        let undone = self.read_state();
        let failed = |error: Error| Error::Failed { reason: format!("{error}, after the disk was full") };
        self.state = undone.map_err(failed)?;
        // If this fails, the next record overwrites what is there.
        let _ = self.file.set_len(self.end);
        Ok(())
    }

    fn read_state(&self) -> Result<super::state::DatabaseState> {
        let mut bytes = vec![0; self.end as usize];
        let read = self.file.read_at(&mut bytes, 0).context(|| format!("reading {}", self.file.name()))?;
        bytes.truncate(read);
        parse(self.file.name(), &bytes, Some(self.end))
    }

    /// Rewrites the manifest if its records have become much longer than the state they describe. If that fails before
    /// the new manifest is the current one, the old one stays in use.
    fn rewrite_when_long(&mut self) -> Result<()> {
        if self.end <= REWRITE_BYTES || self.end <= 2 * self.initial_end {
            return Ok(());
        }
        let written = Self::write_new(self.storage.clone(), self.number + 1, self.state.clone());
        let next = written.and_then(|next| next.prepare_current(None).map(|()| next));
        let Ok(mut next) = next else {
            // Tried again when it has grown as much again. An unfinished new manifest is removed then, or at the next
            // opening.
            self.initial_end = self.end;
            return Ok(());
        };
        self.is_broken = true;
        next.switch_current()?;
        let old = file_name(self.number);
        next.bytes_written += self.bytes_written;
        *self = next;
        // If it cannot be removed now, the next opening removes it.
        let _ = self.storage.remove(&old);
        Ok(())
    }

    /// Notes the manifest's length in `CURRENT`, durably. Appending continues in a new manifest only.
    ///
    /// # Errors
    /// Unless the error is final, `CURRENT` is as before.
    pub fn seal(&self) -> Result<()> {
        self.prepare_current(Some(self.end))?;
        self.switch_current()
    }

    /// Refuses all later appends: the database is closed.
    pub fn end(&mut self) {
        self.is_ended = true;
    }

    /// Writes the future content of `CURRENT` to a file beside it. A failure changes nothing in use.
    pub(super) fn prepare_current(&self, sealed_len: Option<u64>) -> Result<()> {
        let content = Current { number: self.number, sealed_len }.encode();
        let storage = &self.storage;
        let names = storage.list().context(|| "listing the database directory".to_owned())?;
        if names.iter().any(|name| name == CURRENT_NEW) {
            storage.remove(CURRENT_NEW).context(|| format!("removing {CURRENT_NEW}"))?;
        }
        let context = || format!("writing {CURRENT}");
        let current = storage.open(CURRENT_NEW, OpenMode::Create).context(context)?;
        current.write_at(content.as_bytes(), 0).context(context)?;
        current.sync().context(context)
    }

    /// Replaces `CURRENT` by the prepared file, durably. After a failure, only the next opening can find out which of
    /// the two is in effect.
    pub(super) fn switch_current(&self) -> Result<()> {
        let context = || format!("writing {CURRENT}");
        // The manifest's name must be durable before `CURRENT` names it.
        self.storage.sync_directory().context(context)?;
        self.storage.rename(CURRENT_NEW, CURRENT).context(context)?;
        self.storage.sync_directory().context(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alluvium_io::{FaultPlan, SimulatedStorage};

    use alluvium_base::KeyspaceId;

    use alluvium_base::SegmentId;

    use super::*;
    use crate::manifest::{DatabaseState, read_current};

    fn next_file(number: u64) -> Edit {
        Edit::Counters { next_file: number, next_segment: SegmentId(1), next_keyspace: KeyspaceId(0) }
    }

    #[test]
    fn a_record_that_had_no_room_did_not_happen_and_may_happen_later() {
        for seed in 0..50 {
            let storage = SimulatedStorage::new(seed);
            let mut manifest =
                Manifest::create(Arc::new(storage.clone()), 1, DatabaseState::default()).unwrap();
            let mut appended = 0;
            let quota = storage.contents().values().map(|bytes| bytes.len() as u64).sum::<u64>() + 8_192;
            storage.set_quota(Some(quota));
            let error = loop {
                match manifest.append(&vec![next_file(appended + 1); 7]) {
                    Ok(()) => appended += 1,
                    Err(error) => break error,
                }
            };
            assert_eq!(class_of(&error), FailureClass::Full, "{error}");
            assert_eq!((manifest.state().next_file, manifest.is_broken()), (appended, false));
            if seed % 2 == 0 {
                storage.set_quota(None);
                appended += 1;
                manifest.append(&[next_file(appended)]).unwrap();
            }
            storage.crash();
            let (_, state) = read_current(&storage.reopen()).unwrap().unwrap();
            assert_eq!(state.next_file, appended);
        }
    }

    #[test]
    fn a_manifest_that_cannot_be_written_anew_goes_on() {
        let storage = SimulatedStorage::new(1);
        let mut manifest = Manifest::create(Arc::new(storage.clone()), 1, DatabaseState::default()).unwrap();
        storage.set_faults(FaultPlan { fail_opens: Some(0..2), ..FaultPlan::default() });
        let mut appended = 0;
        while manifest.name() == file_name(1) {
            appended += 1;
            manifest.append(&vec![next_file(appended); 500]).unwrap();
        }
        assert_eq!(manifest.name(), file_name(2));
        storage.crash();
        assert_eq!(read_current(&storage.reopen()).unwrap().unwrap().1.next_file, appended);
    }
}
