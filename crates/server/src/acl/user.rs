//! [`User`]: who a client is.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::denial::Denial;
use super::request::Request;
use super::rules::Rules;

/// A user, shared by its clients: a change of its rules applies to their next commands.
pub(crate) struct User {
    pub(crate) name: Box<[u8]>,
    /// Whether it may do everything, so that nothing needs to be checked. Ordered with no other memory: a client's
    /// next command sees the change, since the client hears of it through a reply.
    is_unrestricted: AtomicBool,
    rules: RwLock<Arc<Rules>>,
}

impl User {
    pub(super) fn new(name: &[u8], rules: Rules) -> Self {
        let is_unrestricted = AtomicBool::new(rules.permissions.is_all());
        Self { name: name.into(), is_unrestricted, rules: RwLock::new(Arc::new(rules)) }
    }

    #[inline]
    pub(crate) fn is_unrestricted(&self) -> bool {
        self.is_unrestricted.load(Ordering::Relaxed)
    }

    pub(crate) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set(&self, rules: Rules) {
        let mut current = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        self.is_unrestricted.store(rules.permissions.is_all(), Ordering::Relaxed);
        *current = Arc::new(rules);
    }

    /// Whether the user may execute a command.
    ///
    /// # Errors
    /// What of the request it may not do.
    pub(crate) fn check(&self, request: &Request<'_>) -> Result<(), Denial> {
        if self.is_unrestricted() { Ok(()) } else { self.rules().check(request) }
    }

    /// Whether clients are this user before they authenticate, and need no password.
    pub(crate) fn needs_no_password(&self) -> bool {
        let rules = self.rules();
        rules.is_on && rules.accepts_any_password
    }

    /// Its name, for texts.
    pub(crate) fn shown_name(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }
}

impl fmt::Debug for User {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "User({})", self.shown_name())
    }
}
