//! What a client has told us about itself.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use alluvium_protocol::Version;

use crate::acl::User;
use crate::answer::Wanted;
use crate::changes::Observed;
use crate::client::Client;
use crate::mail::Address;
use crate::protocol::Protocol;
use crate::pubsub::Subscriptions;
use crate::queued_commands::QueuedCommands;
use crate::store::{DatabaseNumber, Watch};
use crate::tracking::{Mode, Reading};

/// The state of one connection that commands see and set.
#[derive(Debug)]
pub(crate) struct Session {
    /// Number of the connection, never used again.
    pub(crate) id: u64,
    /// What other clients see of it, and what it has called itself.
    pub(crate) client: Arc<Client>,
    pub(crate) protocol: Protocol,
    pub(crate) version: Version,
    pub(crate) database: DatabaseNumber,
    /// Who the client is; `default` before it has authenticated.
    pub(crate) user: Arc<User>,
    /// Whether the client has given a password, or needs none.
    pub(crate) is_authenticated: bool,
    /// The commands since `MULTI`.
    pub(crate) transaction: Option<QueuedCommands>,
    pub(crate) subscriptions: Subscriptions,
    /// How the client is told about keys that it keeps, if it is.
    pub(crate) tracking: Option<Reading>,
    /// Whether it is shown all commands.
    pub(crate) is_monitor: bool,
    /// Whether it is the session of a script.
    pub(crate) is_script: bool,
    /// How other workers reach the client; `None` before a worker has it.
    pub(crate) address: Option<Address>,
    /// The keys that must not change before `EXEC`.
    pub(crate) watched: WatchedKeys,
    /// The last command; see [`crate::commands::full_name`].
    pub(crate) last_command: usize,
    pub(crate) replies: Replies,
    /// What answers the last command, which the worker must request.
    pub(crate) wants: Option<Wanted>,
    /// Answer no more requests, and close once the replies are sent.
    pub(crate) closing: bool,
}

impl Session {
    /// The session of a client that has not authenticated: it needs to, unless its user needs no password.
    pub(crate) fn new(client: Client) -> Self {
        let user = client.user();
        Self {
            id: client.id,
            client: Arc::new(client),
            is_authenticated: user.needs_no_password(),
            user,
            protocol: Protocol::default(),
            version: Version::default(),
            database: DatabaseNumber::default(),
            transaction: None,
            subscriptions: Subscriptions::default(),
            tracking: None,
            is_monitor: false,
            is_script: false,
            address: None,
            watched: WatchedKeys::default(),
            last_command: 0,
            replies: Replies::Sent,
            wants: None,
            closing: false,
        }
    }

    /// Resets the session to that of a new connection (`RESET`), but keeps the client library's name and version.
    pub(crate) fn reset(&mut self, user: Arc<User>) {
        self.version = Version::default();
        self.database = DatabaseNumber::default();
        self.is_authenticated = user.needs_no_password();
        self.set_user(user);
        self.transaction = None;
        self.subscriptions = Subscriptions::default();
        self.tracking = None;
        self.is_monitor = false;
        self.watched.clear();
        self.replies = Replies::Sent;
        self.client.labels().name = Box::default();
        self.client.stays.store(false, Ordering::Relaxed);
    }

    /// Bytes that it holds beside the buffers of the connection.
    #[inline]
    pub(crate) fn held_bytes(&self) -> usize {
        let queued = self.transaction.as_ref().map_or(0, |queue| queue.frames.len());
        queued + self.subscriptions.held_bytes() + self.watched.held_bytes
    }

    /// Lets the client be this user, whose password it has given.
    pub(crate) fn authenticate(&mut self, user: Arc<User>) {
        self.is_authenticated = true;
        self.set_user(user);
    }

    fn set_user(&mut self, user: Arc<User>) {
        self.client.set_user(Arc::clone(&user));
        self.user = user;
    }

    /// Whether the client may do everything.
    #[inline]
    pub(crate) fn is_unrestricted(&self) -> bool {
        self.is_authenticated && self.user.is_unrestricted()
    }

    /// Whether all commands are executed when they come, and answered, and nothing is to be noted about reads.
    #[inline]
    pub(crate) fn executes(&self, observed: Observed) -> bool {
        !observed.includes_reads()
            && self.is_unrestricted()
            && self.transaction.is_none()
            && self.replies == Replies::Sent
            && self.tracking.as_ref().is_none_or(|reading| reading.mode == Mode::Broadcast)
            && !self.is_monitor
            && !self.takes_only_messages()
    }

    /// Whether the keys that the next command reads are registered, so that the client is told when they change.
    #[inline]
    pub(crate) fn registers_reads(&self) -> bool {
        self.tracking.as_ref().is_some_and(Reading::registers)
    }

    /// Whether other clients may tell it something.
    pub(crate) fn takes_messages(&self) -> bool {
        !self.subscriptions.is_empty()
            || self.tracking.is_some()
            || self.is_monitor
            || self.client.takes_invalidations.load(Ordering::Relaxed)
    }

    /// Whether the client has subscriptions, and could not tell replies from messages.
    #[inline]
    pub(crate) fn takes_only_messages(&self) -> bool {
        self.version == Version::Resp2 && !self.subscriptions.is_empty()
    }
}

/// Whether the client gets its replies (`CLIENT REPLY`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replies {
    Sent,
    Off,
    /// That to the next command is not sent.
    SkipNext,
    /// That to the command in execution is not sent.
    Skip,
}

/// A key that a client watches.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) database: DatabaseNumber,
    pub(crate) key: Box<[u8]>,
    pub(crate) watch: Watch,
}

/// The keys that a client watches.
#[derive(Debug, Default)]
pub(crate) struct WatchedKeys {
    keys: Vec<Watched>,
    held_bytes: usize,
}

impl WatchedKeys {
    pub(crate) fn push(&mut self, watched: Watched) {
        self.held_bytes += size_of::<Watched>() + watched.key.len();
        self.keys.push(watched);
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Deref for WatchedKeys {
    type Target = [Watched];

    fn deref(&self) -> &[Watched] {
        &self.keys
    }
}

/// Whether `text` may be in a client list, which is separated by spaces and line ends: printable ASCII without spaces.
pub(crate) fn is_label(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_graphic)
}
