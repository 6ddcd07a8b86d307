//! Creating a directory with its parents so that the path survives a power cut.

use std::fs;
use std::io::{ErrorKind, Result};
use std::path::Path;

use crate::error::FileError;

/// The steps of which creating directories consists, so that a test can count them and cut them short.
pub(super) trait Directories {
    /// Whether there is a directory (or anything else) at `path`.
    fn exists(&self, path: &Path) -> bool;

    /// Creates one directory in a parent that exists. Does nothing if the directory exists by now.
    fn create(&self, path: &Path) -> Result<()>;

    /// Makes the names in the directory `path` survive a power cut.
    fn sync(&self, path: &Path) -> Result<()>;
}

/// The operating system's.
pub(super) struct RealDirectories;

impl Directories for RealDirectories {
    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn create(&self, path: &Path) -> Result<()> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            Err(error) => Err(FileError::wrap("create directory", &path.display().to_string(), None, error)),
            Ok(()) => Ok(()),
        }
    }

    fn sync(&self, path: &Path) -> Result<()> {
        fs::File::open(path)
            .and_then(|directory| directory.sync_all())
            .map_err(|error| FileError::wrap("sync directory", &path.display().to_string(), None, error))
    }
}

/// Creates the directory `path` and its missing parents.
///
/// Each parent is synced before a directory is created in its child. So after a power cut at most one name is in doubt,
/// that of the deepest directory that exists; its parent is synced here too, since an earlier attempt may have been cut
/// short right after its creation.
///
/// # Errors
/// Those of the steps. A parent that existed already and may not be read (its names belong to another user) is not
/// synced.
pub(super) fn create_all(directories: &impl Directories, path: &Path) -> Result<()> {
    let ancestors = path.ancestors().filter(|ancestor| !ancestor.as_os_str().is_empty());
    let missing: Vec<&Path> = ancestors.take_while(|ancestor| !directories.exists(ancestor)).collect();
    let present = missing.last().map_or(Some(path), |topmost| topmost.parent());
    let in_doubt = present.filter(|present| !present.as_os_str().is_empty());
    if let Some(parent) = in_doubt.and_then(parent) {
        match directories.sync(parent) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    for created in missing.into_iter().rev() {
        directories.create(created)?;
        if let Some(parent) = parent(created) {
            directories.sync(parent)?;
        }
    }
    Ok(())
}

/// The directory that holds `path`; `None` for the root.
fn parent(path: &Path) -> Option<&Path> {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Some(Path::new(".")),
        parent => parent,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use super::*;

    /// Directories of a machine whose power fails before a given step.
    struct Simulated {
        live: RefCell<BTreeSet<PathBuf>>,
        durable: RefCell<BTreeSet<PathBuf>>,
        steps_left: Cell<usize>,
        unreadable: Option<PathBuf>,
    }

    impl Simulated {
        fn new(present: &[&str]) -> Self {
            let present: BTreeSet<PathBuf> = present.iter().map(PathBuf::from).collect();
            let (live, durable) = (RefCell::new(present.clone()), RefCell::new(present));
            Self { live, durable, steps_left: Cell::new(usize::MAX), unreadable: None }
        }

        fn step(&self) -> Result<()> {
            let left = self.steps_left.get().checked_sub(1).ok_or(ErrorKind::BrokenPipe)?;
            self.steps_left.set(left);
            Ok(())
        }

        /// The process dies and the machine keeps running: the names are there, and still not durable.
        fn kill(&self) {
            self.steps_left.set(usize::MAX);
        }

        fn survives(&self, path: &Path) -> bool {
            let durable = self.durable.borrow();
            path.ancestors().all(|ancestor| ancestor.as_os_str().is_empty() || durable.contains(ancestor))
        }
    }

    impl Directories for Simulated {
        fn exists(&self, path: &Path) -> bool {
            self.live.borrow().contains(path)
        }

        fn create(&self, path: &Path) -> Result<()> {
            self.step()?;
            assert!(path.parent().is_none_or(|parent| parent.as_os_str().is_empty() || self.exists(parent)));
            self.live.borrow_mut().insert(path.to_owned());
            Ok(())
        }

        fn sync(&self, path: &Path) -> Result<()> {
            self.step()?;
            if self.unreadable.as_deref() == Some(path) {
                return Err(ErrorKind::PermissionDenied.into());
            }
            let path = if path == Path::new(".") { Path::new("") } else { path };
            let held =
                self.live.borrow().iter().filter(|name| name.parent() == Some(path)).cloned().collect();
            self.durable.borrow_mut().append(&mut { held });
            Ok(())
        }
    }

    #[test]
    fn a_created_path_survives_whatever_attempts_were_cut_short_before() {
        for (present, path) in [
            (&["/", "/data"][..], "/data/new/deep/database"),
            (&["/"], "/data/database"),
            (&[], "new/database"),
            (&["new"], "new/database"),
            (&[], "database"),
        ] {
            for first in 0..10 {
                for second in 0..10 {
                    let directories = Simulated::new(present);
                    for steps in [first, second] {
                        directories.steps_left.set(steps);
                        let _ = create_all(&directories, Path::new(path));
                        directories.kill();
                    }
                    create_all(&directories, Path::new(path)).unwrap();
                    assert!(directories.survives(Path::new(path)), "{path} after {first} and {second} steps");
                }
            }
        }
    }

    #[test]
    fn a_parent_that_only_its_owner_may_read_is_none_of_ours() {
        let mut directories = Simulated::new(&["/", "/home", "/home/me"]);
        directories.unreadable = Some(PathBuf::from("/home"));
        create_all(&directories, Path::new("/home/me/database")).unwrap();
        assert!(directories.survives(Path::new("/home/me/database")));
        directories.unreadable = Some(PathBuf::from("/home/me"));
        assert!(
            create_all(&directories, Path::new("/home/me/other")).is_err(),
            "a name of ours is not durable"
        );
    }
}
