//! Names of a database's files. Those of the log and the manifest are in their modules, which find files by them.

/// The file whose lock keeps other processes out.
pub(crate) const LOCK: &str = "LOCK";
/// The file that takes reserved space.
pub(crate) const RESERVE: &str = "RESERVE";
/// The file that says that a copy is not complete. A directory with it but without `CURRENT` is not a database.
pub(crate) const COPY_MARKER: &str = "PARTIAL-COPY";

/// The name of table file `number`.
pub(crate) fn table_file_name(number: u64) -> String {
    format!("table-{number:08}")
}

/// The number in a table file's name; `None` for other names.
pub(crate) fn parse_table_file_name(name: &str) -> Option<u64> {
    name.strip_prefix("table-")?.parse().ok()
}

/// The name of blob file `number`.
pub(crate) fn blob_file_name(number: u64) -> String {
    format!("blob-{number:08}")
}

/// The number in a blob file's name; `None` for other names.
pub(crate) fn parse_blob_file_name(name: &str) -> Option<u64> {
    name.strip_prefix("blob-")?.parse().ok()
}

/// The name of a spill's file.
pub(crate) fn spill_file_name(number: u64, part: usize) -> String {
    format!("spill-{number:08}-{part:03}")
}

/// Whether the name is that of a spill's file. After a crash such a file has no owner.
pub(crate) fn is_spill_file_name(name: &str) -> bool {
    name.starts_with("spill-")
}
