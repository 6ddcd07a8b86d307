//! The valid content of a segment.

use alluvium_base::Corruption;
use alluvium_io::{AlignedBuffer, File};

use crate::blob::{BlobFiles, Reference};
use crate::error::{IoContext, Result};
use crate::item::Item;
use crate::log::record::{self, Parsed, Record};
use crate::log::segment::BLOCK;

/// Bytes read at a time.
const READ_BYTES: usize = 1 << 20;

/// The content of a segment up to its first unsound record.
pub(super) struct Content {
    /// Header and sound records.
    pub bytes: Vec<u8>,
    pub sealed: bool,
    /// The damage to a large item, if the record that refers to it ends the content for that reason.
    pub unsound_blob: Option<Corruption>,
}

impl Content {
    fn up_to(mut bytes: Vec<u8>, end: usize) -> Self {
        bytes.truncate(end);
        Self { bytes, sealed: false, unsound_blob: None }
    }

    /// The corruption at the end of the content, if more should be there.
    pub fn corruption(&self, file: &dyn File, expected: &str) -> Corruption {
        let end = self.bytes.len() as u64;
        let expected = format!("a sound record, {expected}");
        match &self.unsound_blob {
            Some(corruption) => corruption.clone(),
            None => Corruption::new(file.name(), end, expected, "an unsound one"),
        }
    }
}

/// Reads a segment's sound content, up to `known_end` if that is given.
///
/// A record is valid only if the large items to which it refers are sound: they were synced before it. With
/// `known_end`, they are not checked.
pub(super) fn read_content(
    file: &dyn File,
    seed: u64,
    known_end: Option<u64>,
    check: bool,
    blobs: &BlobFiles,
) -> Result<Content> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut buffer = AlignedBuffer::zeroed(READ_BYTES);
    let mut at = BLOCK as usize;
    let mut ended = false;
    loop {
        let read = if ended {
            0
        } else {
            file.read_at(&mut buffer, bytes.len() as u64).context(|| format!("reading {}", file.name()))?
        };
        bytes.extend_from_slice(&buffer[..read]);
        ended |= read < READ_BYTES;
        if let Some(end) = known_end
            && bytes.len() as u64 >= end
        {
            bytes.truncate(end as usize);
            ended = true;
        }
        while at < bytes.len() {
            match record::decode(seed, &bytes[at..], check) {
                Parsed::Record(Record::Seal { .. }, len) => {
                    let content = Content::up_to(bytes, at + len);
                    return Ok(Content { sealed: true, ..content });
                }
                Parsed::Record(record, len) => {
                    if known_end.is_none()
                        && let Some(corruption) = unsound_blob(&record, blobs)?
                    {
                        let content = Content::up_to(bytes, at);
                        return Ok(Content { unsound_blob: Some(corruption), ..content });
                    }
                    at += len;
                }
                Parsed::Incomplete if !ended => break,
                Parsed::Incomplete | Parsed::Invalid => return Ok(Content::up_to(bytes, at)),
            }
        }
        if ended {
            return Ok(Content::up_to(bytes, at));
        }
    }
}

/// The damage to large items to which a record refers, in files that were being written.
pub(super) fn unsound_blob(record: &Record<'_>, blobs: &BlobFiles) -> Result<Option<Corruption>> {
    let unsound = |item: &Item<'_>| {
        let mut references = Reference::all_of(item).into_iter();
        references.try_fold(None, |found: Option<Corruption>, reference| {
            Ok(found.or(super::blobs::unsound(blobs, &reference)?))
        })
    };
    match record {
        Record::Item { item, .. } => unsound(item),
        Record::Batch(items) => {
            items.clone().try_fold(None, |found, (_, item, _)| Ok(found.or(unsound(&item)?)))
        }
        Record::Seal { .. } | Record::Mark(_) | Record::Unlogged { .. } | Record::Slots { .. } => Ok(None),
    }
}
