//! What all connections share.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::acl;
use crate::changes::{Expiries, Observers};
use crate::chores::Chores;
use crate::client_memory::ClientMemory;
use crate::clients::Clients;
use crate::commits::Commits;
use crate::counter::Counter;
use crate::error_counts::ErrorCounts;
use crate::latency_events::LatencyEvents;
use crate::memcached::state::State;
use crate::metrics::{Totals, WorkerMetrics};
use crate::monitors::Monitors;
use crate::occasional::Occasional;
use crate::pause::Pause;
use crate::pubsub::Subscribers;
use crate::saves::Saves;
use crate::session::Session;
use crate::slow_log::SlowLog;
use crate::tracking::Tracking;
use crate::udp::Directing;
use crate::{ServerOptions, ShutdownHandle, Store};

/// The server as commands see it. The counters are for `INFO` and for limits; none orders other memory, so all are
/// relaxed.
pub(crate) struct Shared {
    pub(crate) options: ServerOptions,
    /// Maximum number of connections served at once.
    pub(crate) clients_max: AtomicUsize,
    /// How far that can be raised: as many as there are descriptors and memory for.
    pub(crate) clients_max_limit: usize,
    /// Milliseconds after which connections that have sent nothing are closed; 0 for never.
    pub(crate) idle_timeout_ms: AtomicU64,
    /// What the clients hold together.
    pub(crate) memory: ClientMemory,
    /// The server's address, with the port that the system chose.
    pub(crate) address: SocketAddr,
    pub(crate) store: Arc<dyn Store>,
    /// What datagrams are answered with, if any are served.
    pub(crate) directing: Option<Arc<Directing>>,
    pub(crate) users: acl::Users,
    pub(crate) acl_log: acl::Log,
    /// What makes the writes of all workers durable.
    pub(crate) commits: Commits,
    pub(crate) subscribers: Subscribers,
    /// Whether anybody wants to know what commands do.
    pub(crate) observers: Observers,
    pub(crate) tracking: Tracking,
    pub(crate) monitors: Monitors,
    pub(crate) expiries: Expiries,
    #[cfg(feature = "scripting")]
    pub(crate) scripts: crate::scripting::Scripts,
    #[cfg(feature = "scripting")]
    pub(crate) libraries: crate::scripting::Libraries,
    #[cfg(feature = "scripting")]
    pub(crate) running: crate::scripting::Running,
    pub(crate) memcached: State,
    pub(crate) started: Instant,
    pub(crate) shutdown: ShutdownHandle,
    /// Counts items for clients.
    pub(crate) counter: Counter,
    /// Does for clients what takes long.
    pub(crate) chores: Chores,
    pub(crate) saves: Saves,
    /// All connections, except those that are about to be closed for another client.
    pub(crate) connected: Clients,
    pub(crate) pause: Pause,
    pub(crate) slow_log: SlowLog,
    pub(crate) latency_events: LatencyEvents,
    pub(crate) error_counts: ErrorCounts,
    /// Parameters of `CONFIG` on which nothing depends.
    pub(crate) remembered: Mutex<BTreeMap<&'static str, i64>>,
    /// Connections that wait for the end of a pause.
    pub(crate) held_clients: AtomicUsize,
    /// Connections open now.
    pub(crate) clients: AtomicUsize,
    pub(crate) connections_accepted: AtomicU64,
    pub(crate) connections_refused: AtomicU64,
    /// Lines of the log about refused connections.
    pub(crate) refused_log: Occasional,
    /// Those about wrong passwords.
    pub(crate) denied_log: Occasional,
    pub(crate) commands_processed: AtomicU64,
    /// What each worker has done.
    pub(crate) worker_metrics: Box<[Arc<WorkerMetrics>]>,
    /// What they had done at the last `CONFIG RESETSTAT`.
    pub(crate) reset_totals: Mutex<Totals>,
    /// How often the store was resumed.
    pub(crate) resumptions: AtomicU64,
}

impl Shared {
    /// After how long a connection that has sent nothing is closed.
    #[inline]
    pub(crate) fn idle_timeout(&self) -> Option<Duration> {
        let ms = self.idle_timeout_ms.load(Ordering::Relaxed);
        (ms > 0).then(|| Duration::from_millis(ms))
    }

    /// The limit of the process's memory, or that of the store; 0 for none.
    pub(crate) fn memory_bytes_max(&self) -> u64 {
        self.options.memory_bytes_max.unwrap_or_else(|| self.store.memory_bytes_max())
    }

    pub(crate) fn clients_max(&self) -> usize {
        self.clients_max.load(Ordering::Relaxed)
    }

    /// What the workers have done since the last `CONFIG RESETSTAT`.
    pub(crate) fn totals(&self) -> Totals {
        let now = Totals::of(&self.worker_metrics);
        now.since(&self.reset_totals.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn reset_totals(&self) {
        let now = Totals::of(&self.worker_metrics);
        *self.reset_totals.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Ends what a session has asked to be told, because the client leaves or resets the session.
    pub(crate) fn leave(&self, session: &Session) {
        self.subscribers.remove_all(&session.subscriptions, session.id);
        if let Some(reading) = &session.tracking {
            self.tracking.disable(session.id, reading, &self.observers);
        }
        if session.is_monitor {
            self.monitors.remove(session.id, &self.observers);
        }
    }

    /// The value of a parameter on which nothing depends, or its default.
    pub(crate) fn remembered(&self, parameter: &'static str, default: i64) -> String {
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.get(parameter).unwrap_or(&default).to_string()
    }

    pub(crate) fn remember(&self, parameter: &'static str, value: i64) {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).insert(parameter, value);
    }
}
