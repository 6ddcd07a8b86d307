//! [`FailureClass`]: the consequence of a failed operation for the database
//! ([decision 0048](../../../docs/decisions/0048-errors-by-class.md)).

use std::io::ErrorKind;

use alluvium_io::FileError;

use crate::error::Error;
use crate::file_names::{is_spill_file_name, parse_directory_file_name, parse_table_file_name};

/// The consequence of a failed operation for the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureClass {
    /// Nothing that counts has changed on the device: the operation can be repeated.
    Passing,
    /// The log, the manifest or a blob file found no space. What could not be written is still in memory.
    Full,
    /// What is on the device is unknown, or known to be wrong.
    Final,
}

/// The class of a failure.
///
/// A failure on a file that no durable record names (a table or spill being written) is never final, also for lack of
/// space: the operation removes the file and writes another one later. A failed sync of any other file is final,
/// regardless of its reason: the kernel may have dropped what it could not write.
pub(crate) fn class_of(error: &Error) -> FailureClass {
    let source = match error {
        Error::Io { source, .. } => source,
        // These failures were handled where they were found.
        Error::DiskFull { .. } | Error::Stalled { .. } => return FailureClass::Passing,
        _ => return FailureClass::Final,
    };
    let Some(file_error) = FileError::of(source) else {
        return if source.kind() == ErrorKind::OutOfMemory {
            FailureClass::Passing
        } else {
            FailureClass::Final
        };
    };
    let counts = !is_uncounted(file_error.name());
    match (file_error.is_sync(), file_error.is_change() || file_error.is_rename()) {
        (true, _) if counts => FailureClass::Final,
        _ if counts && lacks_space(error) => FailureClass::Full,
        (false, true) if counts => FailureClass::Final,
        _ => FailureClass::Passing,
    }
}

/// Whether an operation failed because the device had no space.
pub(crate) fn lacks_space(error: &Error) -> bool {
    match error {
        Error::Io { source, .. } => {
            matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
        }
        Error::DiskFull { .. } => true,
        _ => false,
    }
}

/// Whether files of this name count only once a record names them.
fn is_uncounted(name: &str) -> bool {
    parse_table_file_name(name).is_some()
        || parse_directory_file_name(name).is_some()
        || is_spill_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alluvium_io::{FaultPlan, File, OpenMode, SimulatedStorage, Storage};

    use super::*;
    use crate::error::IoContext;

    fn class(outcome: std::io::Result<()>) -> FailureClass {
        class_of(&outcome.context(String::new).unwrap_err())
    }

    fn create(storage: &SimulatedStorage, name: &str) -> Arc<dyn File> {
        storage.open(name, OpenMode::Create).unwrap()
    }

    #[test]
    fn only_writes_and_syncs_of_files_that_count_are_final() {
        use FailureClass::{Final, Full, Passing};
        let storage = SimulatedStorage::new(1);
        let names = ["log-00000001", "manifest-000001", "blob-00000001", "table-00000001", "spill-7-1"];
        for (name, class_of_write) in names.into_iter().zip([Final, Final, Final, Passing, Passing]) {
            let class_without_space = if class_of_write == Final { Full } else { Passing };
            let file = create(&storage, name);
            let faults = FaultPlan { fail_write: Some(0), fail_sync: Some(0), ..FaultPlan::default() };
            storage.set_faults(faults);
            assert_eq!(class(file.write_at(&[1], 0)), class_of_write, "{name}");
            assert_eq!(class(file.sync()), class_of_write, "{name}");
            storage.set_faults(FaultPlan { quota_bytes: Some(0), ..FaultPlan::default() });
            assert_eq!(class(file.write_at(&[1; 9000], 4096)), class_without_space, "{name}");
            assert_eq!(class(file.check_available(0, 1)), class_without_space, "{name}");
            storage.set_faults(FaultPlan { fail_read: Some(0), ..FaultPlan::default() });
            assert_eq!(class(file.read_at(&mut [0], 0).map(drop)), Passing);
        }
        storage.set_faults(FaultPlan { fail_sync: Some(0), fail_opens: Some(0..2), ..FaultPlan::default() });
        assert_eq!(class(storage.sync_directory()), Final);
        assert_eq!(class(storage.open("log-00000002", OpenMode::Create).map(drop)), Passing);
        assert_eq!(class(storage.open("table-00000001", OpenMode::Read).map(drop)), Passing);
    }
}
