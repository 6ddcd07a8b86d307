//! Names of a database's files. Those of the log and the manifest are in their modules, which find files by them.

use alluvium_base::{BlobId, TableId};

/// The file whose lock keeps other processes out.
pub(crate) const LOCK: &str = "LOCK";
/// The file that takes reserved space.
pub(crate) const RESERVE: &str = "RESERVE";
/// The file that says that a copy is not complete. A directory with it but without `CURRENT` is not a database.
pub(crate) const COPY_MARKER: &str = "PARTIAL-COPY";

/// The name of table file `id`.
pub(crate) fn table_file_name(id: TableId) -> String {
    format!("table-{id:08}")
}

/// The id in a table file's name; `None` for other names.
pub(crate) fn parse_table_file_name(name: &str) -> Option<TableId> {
    name.strip_prefix("table-")?.parse().ok().map(TableId)
}

/// The name of blob file `id`.
pub(crate) fn blob_file_name(id: BlobId) -> String {
    format!("blob-{id:08}")
}

/// The id in a blob file's name; `None` for other names.
pub(crate) fn parse_blob_file_name(name: &str) -> Option<BlobId> {
    name.strip_prefix("blob-")?.parse().ok().map(BlobId)
}

/// The name of the file of this number, which has the directory of a chained keyspace.
pub(crate) fn directory_file_name(number: u64) -> String {
    format!("directory-{number:08}")
}

/// The number in the name of such a file; `None` for other names.
pub(crate) fn parse_directory_file_name(name: &str) -> Option<u64> {
    name.strip_prefix("directory-")?.parse().ok()
}

/// The name of a spill's file.
pub(crate) fn spill_file_name(number: u64, part: usize) -> String {
    format!("spill-{number:08}-{part:03}")
}

/// Whether the name is that of a spill's file. After a crash such a file has no owner.
pub(crate) fn is_spill_file_name(name: &str) -> bool {
    name.starts_with("spill-")
}
