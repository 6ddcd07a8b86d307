//! Names of blob files.

/// The name of blob file `number`.
pub(crate) fn file_name(number: u64) -> String {
    format!("blob-{number:08}")
}

/// The number in a blob file's name, or `None` for other names.
pub(crate) fn parse_file_name(name: &str) -> Option<u64> {
    name.strip_prefix("blob-")?.parse().ok()
}
