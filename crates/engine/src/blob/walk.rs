//! Lists the records of a blob file by their headers.

use alluvium_io::AlignedBuffer;

use super::file::BlobFile;
use super::frame::{FILE_HEADER_BYTES, RECORD_HEADER_BYTES, RecordHeader};
use super::reference::Reference;
use crate::error::Result;

/// Bytes read at a time where records are short.
const WINDOW_BYTES: u64 = 256 << 10;

/// Calls `visit` with every record up to the file's end, or to the first offset without a header; returns that offset.
/// Reads the headers, and short records with them; bodies are not checked.
pub(crate) fn walk(
    file: &BlobFile,
    mut visit: impl FnMut(&RecordHeader, Reference) -> Result<()>,
) -> Result<u64> {
    let size = file.size();
    let mut offset = FILE_HEADER_BYTES as u64;
    let mut window = AlignedBuffer::new();
    let (mut window_start, mut window_end, mut skip) = (0, 0, 0);
    while offset + RECORD_HEADER_BYTES as u64 <= size {
        let end = offset + RECORD_HEADER_BYTES as u64;
        if offset < window_start || end > window_end {
            (window_start, window_end) = (offset, size.min(offset + WINDOW_BYTES));
            skip = file.read(window_start, window_end, &mut window)?;
        }
        let at = skip + (offset - window_start) as usize;
        let bytes = &window[at..at + RECORD_HEADER_BYTES];
        let Some(header) = RecordHeader::decode(bytes, file.seed(), offset) else { break };
        let next = header.end(offset);
        if next > size {
            break;
        }
        let RecordHeader { key_len, value_len, .. } = header;
        visit(&header, Reference { file: file.id, body: header.body(offset), key_len, value_len })?;
        offset = next;
    }
    Ok(offset)
}
