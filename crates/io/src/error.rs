//! I/O errors that say which file, where and doing what.

use std::fmt;
use std::io;

/// The cause of every `io::Error` of this crate that came from the operating system: what was done to which file, and
/// the system's own error, which keeps its code ([`io::Error::raw_os_error`]) behind [`std::error::Error::source`].
#[derive(Debug)]
pub struct FileError {
    operation: &'static str,
    name: String,
    offset: Option<u64>,
    source: io::Error,
}

impl FileError {
    /// `source` with its context, of the same [`io::ErrorKind`].
    pub(crate) fn wrap(
        operation: &'static str,
        name: &str,
        offset: Option<u64>,
        source: io::Error,
    ) -> io::Error {
        io::Error::new(source.kind(), Self { operation, name: name.to_owned(), offset, source })
    }

    /// The name of the file (or the path of the directory) concerned.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a sync failed: the state of the device is unknown then.
    pub fn is_sync(&self) -> bool {
        self.operation.starts_with("sync")
    }

    /// Whether a change of bytes or of a length failed: a part of it may have happened.
    pub fn is_change(&self) -> bool {
        matches!(self.operation, "write" | "resize")
    }

    /// Whether a change of names failed.
    pub fn is_rename(&self) -> bool {
        self.operation == "rename"
    }

    /// Returns the cause of `error` if that is a failed operation on a file.
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// The byte offset of the operation, if it has one.
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "cannot {} {}", self.operation, self.name)?;
        if let Some(offset) = self.offset {
            write!(out, " at offset {offset}")?;
        }
        write!(out, ": {}", self.source)
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Refuses names that could leave the directory.
pub(crate) fn check_name(name: &str) -> io::Result<()> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\\', '\0']) {
        let message =
            format!("{name:?} is not a plain file name: it must have no separator and not be empty");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_file_and_offset_and_the_kind_stays() {
        let error = FileError::wrap("read", "table-7", Some(4096), io::Error::from_raw_os_error(28));
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().starts_with("cannot read table-7 at offset 4096: "), "{error}");
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<FileError>()).unwrap();
        assert_eq!((inner.name(), inner.offset()), ("table-7", Some(4096)));
    }

    #[test]
    fn names_stay_in_the_directory() {
        assert!(check_name("table-7.run").is_ok());
        for name in ["", ".", "..", "a/b", "/etc/passwd", "a\\b", "a\0b"] {
            assert_eq!(check_name(name).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
