//! [`HeldRecords`]: large items whose tables are not written yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_base::BlobId;

use super::record_writer::PendingRecord;
use crate::blob::BlobFile;

/// Records to which nothing refers yet. They are protected from collection until this is dropped. By then tables or the
/// log refer to them and count their own references, or they are garbage.
///
/// Takes memory per file, regardless of the number of records.
#[derive(Debug, Default)]
pub(crate) struct HeldRecords(BTreeMap<BlobId, Held>);

/// Records of one file, in which this counts as a writer.
#[derive(Debug)]
struct Held {
    file: Arc<BlobFile>,
    bytes: i64,
}

impl HeldRecords {
    /// Takes a record over from its writer.
    pub fn hold(&mut self, record: PendingRecord) {
        let (file, bytes) = (record.file().clone(), record.stored_bytes() as i64);
        let held = self.0.entry(file.id).or_insert_with(|| {
            file.enter();
            Held { file, bytes: 0 }
        });
        held.bytes += bytes;
        record.commit();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.file.add_live(-self.bytes);
        self.file.leave();
    }
}
