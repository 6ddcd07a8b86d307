//! [`Users`]: all users, by their names.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::catalog::Catalog;
use super::rules::{Rules, merge_selectors};
use super::user::User;
use super::{file, has_spaces};
use crate::Password;

/// The user that clients are before they authenticate.
pub(crate) const DEFAULT: &[u8] = b"default";

type ByName = BTreeMap<Box<[u8]>, Arc<User>>;

/// The users of the server.
pub(crate) struct Users {
    /// The commands that rules may name.
    catalog: &'static Catalog,
    /// Changes hold the lock from the reading of rules to their writing.
    by_name: Mutex<ByName>,
    default: Arc<User>,
    /// Whether new users may name all channels.
    all_channels: AtomicBool,
    /// Where [`Users::load`] reads.
    file: Option<Box<Path>>,
}

/// What became of a user.
pub(crate) enum Change {
    /// It is new, or may do other things.
    Set(Arc<User>),
    /// It exists no more, and its clients must go.
    Removed(Arc<User>),
}

impl Users {
    /// The user `default` with this password, or none, and the users of the file.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub(crate) fn new(
        catalog: &'static Catalog,
        password: Option<Password>,
        file: Option<&Path>,
    ) -> Result<Self, String> {
        let default = Arc::new(User::new(DEFAULT, Rules::of_default(catalog, password)));
        let users = Self {
            catalog,
            by_name: Mutex::new(ByName::from([(DEFAULT.into(), Arc::clone(&default))])),
            default,
            all_channels: AtomicBool::new(false),
            file: file.map(Into::into),
        };
        if users.file.is_some() {
            users.load()?;
        }
        Ok(users)
    }

    fn by_name(&self) -> MutexGuard<'_, ByName> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn default(&self) -> &Arc<User> {
        &self.default
    }

    pub(crate) fn gives_all_channels(&self) -> bool {
        self.all_channels.load(Ordering::Relaxed)
    }

    pub(crate) fn give_all_channels(&self, all_channels: bool) {
        self.all_channels.store(all_channels, Ordering::Relaxed);
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<Arc<User>> {
        self.by_name().get(name).cloned()
    }

    /// All users, in the order of their names.
    pub(crate) fn all(&self) -> Vec<Arc<User>> {
        self.by_name().values().cloned().collect()
    }

    /// The user of this name, if the password is right and the user is on.
    pub(crate) fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        self.get(name).filter(|user| user.rules().admits(password))
    }

    /// Changes a user by all these rules or by none, and creates it if there is none.
    ///
    /// # Errors
    /// What is wrong with a rule.
    pub(crate) fn set<'a>(
        &self,
        name: &[u8],
        changes: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Change, String> {
        if has_spaces(name) || name.is_empty() {
            return Err("Usernames can't contain spaces or null characters".to_owned());
        }
        let changes = merge_selectors(changes).map_err(|begin| {
            let begin = String::from_utf8_lossy(begin);
            format!("Unmatched parenthesis in acl selector starting at '{begin}'.")
        })?;
        let mut by_name = self.by_name();
        let mut rules = match by_name.get(name) {
            Some(user) => (*user.rules()).clone(),
            None => Rules::new(self.catalog, self.gives_all_channels()),
        };
        for change in &changes {
            rules.apply(self.catalog, change, self.gives_all_channels()).map_err(|error| {
                format!("Error in ACL SETUSER modifier '{}': {error}", String::from_utf8_lossy(change))
            })?;
        }
        let user = match by_name.get(name) {
            Some(user) => {
                user.set(rules);
                Arc::clone(user)
            }
            None => {
                let user = Arc::new(User::new(name, rules));
                by_name.insert(name.into(), Arc::clone(&user));
                user
            }
        };
        Ok(Change::Set(user))
    }

    /// Gives `default` this password alone; an empty one means that it needs none.
    pub(crate) fn set_default_password(&self, password: &[u8]) {
        let _changing = self.by_name();
        let mut rules = (*self.default.rules()).clone();
        rules.set_password(Password::new(password));
        self.default.set(rules);
    }

    /// Removes a user, who may do nothing any more. Not for the user `default`.
    pub(crate) fn remove(&self, name: &[u8]) -> Option<Change> {
        debug_assert_ne!(name, DEFAULT);
        let user = self.by_name().remove(name)?;
        user.set(Rules::new(self.catalog, false));
        Some(Change::Removed(user))
    }

    /// Replaces all users by those of the file. `default` stays as it is if the file does not name it.
    ///
    /// # Errors
    /// What is wrong with the file; then nothing has changed.
    pub(crate) fn load(&self) -> Result<Vec<Change>, String> {
        let path = self.file().ok_or("there is no file of users")?;
        let loaded = file::read(self.catalog, path, self.gives_all_channels())?;
        let mut by_name = self.by_name();
        let before = std::mem::take(&mut *by_name);
        by_name.insert(DEFAULT.into(), Arc::clone(&self.default));
        let mut changes = Vec::new();
        for (_, user) in before.into_iter().filter(|(name, _)| **name != *DEFAULT) {
            user.set(Rules::new(self.catalog, false));
            changes.push(Change::Removed(user));
        }
        for (name, rules) in loaded {
            if *name == *DEFAULT {
                self.default.set(rules);
                changes.push(Change::Set(Arc::clone(&self.default)));
            } else {
                let user = Arc::new(User::new(&name, rules));
                by_name.insert(name, user);
            }
        }
        Ok(changes)
    }

    /// Writes all users to the file.
    ///
    /// # Errors
    /// Why that failed; the file is then as it was.
    pub(crate) fn save(&self) -> Result<(), String> {
        let path = self.file().ok_or("there is no file of users")?;
        let text: Vec<u8> =
            self.all().iter().flat_map(|user| [line(user), b"\n".to_vec()].concat()).collect();
        file::write(path, &text).map_err(|error| format!("cannot write {}: {error}", path.display()))
    }
}

/// A user as a line of the file.
pub(crate) fn line(user: &User) -> Vec<u8> {
    [b"user ", &user.name[..], b" ", &user.rules().text()[..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::catalog;

    #[test]
    fn users_are_saved_and_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("users.acl");
        std::fs::write(&path, "user alice on >secret ~a* +@read\n\n  user bob off\r\n").unwrap();
        let users = Users::new(catalog(), None, Some(&path)).unwrap();
        let rules = [&b"on"[..], b"nopass", b"~b", b"(+get", b"~\xff)"];
        assert!(matches!(users.set(b"bob", rules.into_iter()), Ok(Change::Set(_))));
        users.save().unwrap();
        let lines = |users: &Users| users.all().iter().map(|user| line(user)).collect::<Vec<_>>();
        let again = Users::new(catalog(), None, Some(&path)).unwrap();
        assert_eq!(lines(&users), lines(&again));
        assert!(again.authenticate(b"alice", b"secret").is_some());
        assert!(again.authenticate(b"alice", b"Secret").is_none());
        let (alice, changes) = (users.get(b"alice").unwrap(), users.load().unwrap());
        assert!(
            changes.iter().any(|change| matches!(change, Change::Removed(user) if Arc::ptr_eq(user, &alice)))
        );
        assert!(!alice.rules().is_on);
    }

    #[test]
    fn a_wrong_file_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("users.acl");
        std::fs::write(&path, "user alice on nopass +@all").unwrap();
        let users = Users::new(catalog(), None, Some(&path)).unwrap();
        for (text, part) in [
            ("user alice on\nuser alice off", "Duplicate user 'alice' found on line 2"),
            ("alice on", ":1 should start with user keyword followed by the username"),
            ("user", "should start with user keyword"),
            ("user bob +nothing", "Error in applying operation '+nothing': Unknown command"),
            ("user bob (+get", "Unmatched parenthesis"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = users.load().err().unwrap();
            assert!(error.contains(part), "{error}");
            assert!(error.ends_with("no change to the previously active ACL rules was performed"), "{error}");
            assert!(users.authenticate(b"alice", b"x").is_some());
        }
    }
}
