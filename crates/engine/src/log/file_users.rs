//! [`FileUsers`]: who needs the file of a segment that was converted.

use alluvium_io::sync::atomic::{AtomicU8, Ordering};

/// Who may need the file of a segment that was converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FileUser {
    /// Keyspaces with chains that have records in it.
    Chains = 1,
    /// Readers of the log.
    Readers = 2,
}

/// See the module. The user who ends last disposes of the file. So the file of a segment whose chains were collected
/// stays as long as an older one does, and a repair without a manifest finds the removals in it that hide items of the
/// older one.
#[derive(Debug, Default)]
pub(crate) struct FileUsers {
    users: AtomicU8,
}

impl FileUsers {
    pub fn add(&self, user: FileUser) {
        self.users.fetch_or(user as u8, Ordering::AcqRel);
    }

    /// Notes that `user` does not need the file any more. Returns whether nobody does.
    pub fn end(&self, user: FileUser) -> bool {
        self.users.fetch_and(!(user as u8), Ordering::AcqRel) & !(user as u8) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_user_is_told_so() {
        for (first, second) in [(FileUser::Chains, FileUser::Readers), (FileUser::Readers, FileUser::Chains)]
        {
            let users = FileUsers::default();
            users.add(first);
            users.add(second);
            assert!(!users.end(first) && users.end(second));
        }
        let users = FileUsers::default();
        users.add(FileUser::Chains);
        assert!(users.end(FileUser::Chains));
    }
}
