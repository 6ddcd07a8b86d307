//! [`Client`]: a connection as other clients see it.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use alluvium_protocol::Version;

use crate::acl::User;
use crate::pubsub::Topic;
use crate::session::Session;
use crate::socket::Endpoint;
use crate::tracking::Mode;

/// What a connection shows to other workers. Its own worker writes the state at the end of each round, so it may be a
/// round old. The fields order no other memory, so all are relaxed.
#[derive(Debug)]
pub(crate) struct Client {
    /// Number of the connection, never used again.
    pub(crate) id: u64,
    /// Its end and ours; `None` if it has no socket, as a script.
    pub(crate) ends: Option<Ends>,
    pub(crate) opened: Instant,
    labels: Mutex<Labels>,
    user: Mutex<Arc<User>>,
    descriptor: AtomicI32,
    /// Number of the connection at its worker, once that has it.
    connection: AtomicUsize,
    /// Milliseconds after the opening.
    active_ms: AtomicU64,
    /// Where the last command is in the table; see [`crate::commands::full_name`].
    command: AtomicUsize,
    database: AtomicU8,
    is_resp3: AtomicBool,
    is_in_transaction: AtomicBool,
    is_closing: AtomicBool,
    is_authenticated: AtomicBool,
    is_tracking: AtomicBool,
    is_broadcast: AtomicBool,
    is_monitor: AtomicBool,
    /// The client that is told about keys that this one has read; 0 for itself, -1 if it is not told.
    redirection: AtomicI64,
    /// Another client lets this one be told about keys.
    pub(crate) takes_invalidations: AtomicBool,
    /// `CLIENT NO-EVICT`.
    pub(crate) stays: AtomicBool,
    channels: AtomicUsize,
    patterns: AtomicUsize,
    queued_commands: AtomicUsize,
    queued_bytes: AtomicUsize,
    input_bytes: AtomicUsize,
    output_bytes: AtomicUsize,
    charged_bytes: AtomicUsize,
    /// What it was charged when it was chosen to be closed for its memory.
    leaving_bytes: AtomicUsize,
}

/// Both ends of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    pub(crate) peer: Endpoint,
    pub(crate) local: Endpoint,
}

/// Names that a client has given itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Labels {
    pub(crate) name: Box<str>,
    pub(crate) library_name: Box<str>,
    pub(crate) library_version: Box<str>,
}

impl Client {
    pub(crate) fn new(id: u64, ends: Option<Ends>, user: Arc<User>) -> Self {
        Self {
            id,
            ends,
            opened: Instant::now(),
            labels: Mutex::default(),
            user: Mutex::new(user),
            descriptor: AtomicI32::new(-1),
            connection: AtomicUsize::new(usize::MAX),
            active_ms: AtomicU64::default(),
            command: AtomicUsize::default(),
            database: AtomicU8::default(),
            is_resp3: AtomicBool::default(),
            is_in_transaction: AtomicBool::default(),
            is_closing: AtomicBool::default(),
            is_authenticated: AtomicBool::default(),
            is_tracking: AtomicBool::default(),
            is_broadcast: AtomicBool::default(),
            is_monitor: AtomicBool::default(),
            redirection: AtomicI64::new(-1),
            takes_invalidations: AtomicBool::default(),
            stays: AtomicBool::default(),
            channels: AtomicUsize::default(),
            patterns: AtomicUsize::default(),
            queued_commands: AtomicUsize::default(),
            queued_bytes: AtomicUsize::default(),
            input_bytes: AtomicUsize::default(),
            output_bytes: AtomicUsize::default(),
            charged_bytes: AtomicUsize::default(),
            leaving_bytes: AtomicUsize::default(),
        }
    }

    /// Where it connects from; nothing if it has no socket.
    pub(crate) fn peer(&self) -> String {
        self.ends.as_ref().map(|ends| ends.peer.to_string()).unwrap_or_default()
    }

    pub(crate) fn labels(&self) -> MutexGuard<'_, Labels> {
        self.labels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn user(&self) -> Arc<User> {
        Arc::clone(&self.user.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set_user(&self, user: Arc<User>) {
        *self.user.lock().unwrap_or_else(PoisonError::into_inner) = user;
    }

    pub(crate) fn set_descriptor(&self, descriptor: RawFd) {
        self.descriptor.store(descriptor, Ordering::Relaxed);
    }

    pub(crate) fn set_connection(&self, number: usize) {
        self.connection.store(number, Ordering::Relaxed);
    }

    /// Number of the connection at its worker, once that has it.
    pub(crate) fn connection(&self) -> Option<usize> {
        let number = self.connection.load(Ordering::Relaxed);
        (number != usize::MAX).then_some(number)
    }

    /// Takes over what the session is now.
    #[inline]
    pub(crate) fn show(&self, session: &Session, active: Instant) {
        let active = active.saturating_duration_since(self.opened);
        self.active_ms.store(active.as_millis() as u64, Ordering::Relaxed);
        self.command.store(session.last_command, Ordering::Relaxed);
        self.database.store(session.database.position() as u8, Ordering::Relaxed);
        self.is_resp3.store(session.version == Version::Resp3, Ordering::Relaxed);
        self.is_closing.store(session.closing, Ordering::Relaxed);
        self.is_authenticated.store(session.is_authenticated, Ordering::Relaxed);
        let tracking = session.tracking.as_ref();
        let is_broadcast = tracking.is_some_and(|reading| reading.mode == Mode::Broadcast);
        let redirection = tracking.map_or(-1, |reading| reading.redirection.unwrap_or(0) as i64);
        self.is_tracking.store(tracking.is_some(), Ordering::Relaxed);
        self.is_broadcast.store(is_broadcast, Ordering::Relaxed);
        self.redirection.store(redirection, Ordering::Relaxed);
        self.is_monitor.store(session.is_monitor, Ordering::Relaxed);
        let subscribed = |topic| session.subscriptions.names(topic).len();
        self.channels.store(subscribed(Topic::Channel), Ordering::Relaxed);
        self.patterns.store(subscribed(Topic::Pattern), Ordering::Relaxed);
        let queue = session.transaction.as_ref();
        self.is_in_transaction.store(queue.is_some(), Ordering::Relaxed);
        self.queued_commands.store(queue.map_or(0, |queue| queue.len), Ordering::Relaxed);
        self.queued_bytes.store(queue.map_or(0, |queue| queue.frames.len()), Ordering::Relaxed);
    }

    /// Takes over how many bytes the connection's buffers hold.
    #[inline]
    pub(crate) fn show_buffers(&self, input_bytes: usize, output_bytes: usize) {
        self.input_bytes.store(input_bytes, Ordering::Relaxed);
        self.output_bytes.store(output_bytes, Ordering::Relaxed);
    }

    /// Takes over for how many bytes it is charged.
    pub(crate) fn show_charge(&self, bytes: usize) {
        self.charged_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn charged_bytes(&self) -> usize {
        self.charged_bytes.load(Ordering::Relaxed)
    }

    /// Notes that it is closed for its memory.
    pub(crate) fn leave(&self) -> usize {
        let bytes = self.charged_bytes();
        self.leaving_bytes.store(bytes, Ordering::Relaxed);
        bytes
    }

    pub(crate) fn leaving_bytes(&self) -> usize {
        self.leaving_bytes.load(Ordering::Relaxed)
    }

    /// How long it has sent and read nothing.
    pub(crate) fn idle(&self) -> Duration {
        let active = Duration::from_millis(self.active_ms.load(Ordering::Relaxed));
        self.opened.elapsed().saturating_sub(active)
    }

    pub(crate) fn input_bytes(&self) -> usize {
        self.input_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn output_bytes(&self) -> usize {
        self.output_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_authenticated(&self) -> bool {
        self.is_authenticated.load(Ordering::Relaxed)
    }

    pub(crate) fn is_subscriber(&self) -> bool {
        self.channels.load(Ordering::Relaxed) + self.patterns.load(Ordering::Relaxed) > 0
    }

    /// The line about the connection in a client list, without its end.
    pub(crate) fn line(&self, command_name: fn(usize) -> &'static str) -> String {
        let Labels { name, library_name, library_version } = self.labels().clone();
        let age = self.opened.elapsed();
        let idle = age.saturating_sub(Duration::from_millis(self.active_ms.load(Ordering::Relaxed)));
        let queued = self.is_in_transaction.load(Ordering::Relaxed);
        let transaction = if queued { self.queued_commands.load(Ordering::Relaxed) as i64 } else { -1 };
        let (input, output) = (self.input_bytes(), self.output_bytes());
        let queued_bytes = self.queued_bytes.load(Ordering::Relaxed);
        let memory = size_of::<Self>() + input + output + queued_bytes;
        let (peer, local) =
            (self.peer(), self.ends.as_ref().map(|ends| ends.local.to_string()).unwrap_or_default());
        format!(
            "id={} addr={peer} laddr={local} fd={} name={name} age={} idle={} flags={} db={} sub={} psub={} ssub=0 \
             multi={transaction} qbuf={input} qbuf-free=0 argv-mem=0 multi-mem={queued_bytes} rbs=0 rbp=0 obl={output} \
             oll=0 omem=0 tot-mem={memory} events={} cmd={} user={} redir={} resp={} lib-name={library_name} \
             lib-ver={library_version}",
            self.id,
            self.descriptor.load(Ordering::Relaxed),
            age.as_secs(),
            idle.as_secs(),
            self.flags(queued),
            self.database.load(Ordering::Relaxed),
            self.channels.load(Ordering::Relaxed),
            self.patterns.load(Ordering::Relaxed),
            if output > 0 { "rw" } else { "r" },
            command_name(self.command.load(Ordering::Relaxed)),
            self.user().shown_name(),
            self.redirection.load(Ordering::Relaxed),
            if self.is_resp3.load(Ordering::Relaxed) { 3 } else { 2 },
        )
    }

    fn flags(&self, is_in_transaction: bool) -> String {
        let flags: String = [
            ('U', self.ends.as_ref().is_some_and(|ends| ends.local.is_unix())),
            ('O', self.is_monitor.load(Ordering::Relaxed)),
            ('P', self.is_subscriber()),
            ('x', is_in_transaction),
            ('t', self.is_tracking.load(Ordering::Relaxed)),
            ('B', self.is_broadcast.load(Ordering::Relaxed)),
            ('c', self.is_closing.load(Ordering::Relaxed)),
            ('e', self.stays.load(Ordering::Relaxed)),
        ]
        .into_iter()
        .filter_map(|(flag, is_set)| is_set.then_some(flag))
        .collect();
        if flags.is_empty() { "N".to_owned() } else { flags }
    }
}
