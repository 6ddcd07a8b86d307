//! [`Server`]: its threads, from the beginning to the end.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use alluvium::Db;

use crate::acceptor::Acceptor;
use crate::backups;
use crate::changes::Observers;
use crate::client_memory::ClientMemory;
use crate::descriptors;
use crate::engine::EngineStore;
use crate::inbox::Inbox;
use crate::keeper;
use crate::metrics::{MetricsListener, WorkerMetrics};
use crate::protocol::Protocol;
use crate::saves::Saves;
use crate::shared::Shared;
use crate::socket::{self, Endpoint, Listening};
use crate::udp::{self, Directing, WorkerSocket};
use crate::worker::Worker;
use crate::{Listeners, ServerError, ServerOptions, ShutdownHandle, Store};

/// A server for Redis and memcached clients: bound to its addresses, not yet serving.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use alluvium_server::{Server, ServerOptions};
///
/// let db = alluvium::Db::open("data")?;
/// let server = Server::bind(ServerOptions::default(), db.clone())?;
/// server.shutdown_handle().on_termination_signals()?;
/// println!("serving on {}", server.local_address());
/// server.run()?;
/// db.close()?;
/// # Ok(())
/// # }
/// ```
pub struct Server {
    /// Where clients connect; the first has the main address.
    listening: Vec<Listening>,
    metrics: Option<MetricsListener>,
    /// A socket for the datagrams of each worker, if any are served, and how it hands requests to the others.
    datagrams: Vec<WorkerSocket>,
    shared: Arc<Shared>,
}

impl Server {
    /// Binds to the address of `options`, to serve the keyspaces of `db`: `default` as database 0, which is created
    /// if it does not exist, and `db1` to `db15`, which are created when a client selects them. The database stays open
    /// when the server ends.
    ///
    /// # Errors
    /// As [`Server::with_store`], and when the keyspace cannot be opened.
    pub fn bind(options: ServerOptions, db: Db) -> Result<Self, ServerError> {
        Self::bind_to(options, Listeners::default(), db)
    }

    /// Like [`Server::bind`], on sockets that listen already; the addresses of the options are used for those that are
    /// missing.
    ///
    /// # Errors
    /// As [`Server::bind`], also if a socket listens on an address that is not allowed.
    pub fn bind_to(options: ServerOptions, listeners: Listeners, db: Db) -> Result<Self, ServerError> {
        let store = EngineStore::open(db).map_err(ServerError::Store)?;
        Self::on_listeners(options, listeners, Arc::new(store))
    }

    /// Binds to the address of `options`, to serve any store.
    ///
    /// # Errors
    /// An address that is not loopback with neither a [`password`](ServerOptions::password) nor
    /// [`allow_remote`](ServerOptions::allow_remote), or one that the system refuses.
    pub fn with_store(options: ServerOptions, store: Arc<dyn Store>) -> Result<Self, ServerError> {
        Self::on_listeners(options, Listeners::default(), store)
    }

    /// Like [`Server::with_store`], on sockets that listen already; the addresses of the options are used for those
    /// that are missing.
    ///
    /// # Errors
    /// As [`Server::with_store`], also if a socket listens on an address that is not allowed.
    pub fn on_listeners(
        options: ServerOptions,
        listeners: Listeners,
        store: Arc<dyn Store>,
    ) -> Result<Self, ServerError> {
        let users = options.users()?;
        let listening = socket::for_clients(&options.as_open_as(&users), listeners.clients)?;
        let metrics = socket::for_metrics(&options, listeners.metrics)?.map(MetricsListener::new);
        let metrics = metrics.transpose().map_err(ServerError::io("listen for requests of metrics"))?;
        let address = internet_address(&listening, |_| true).unwrap_or(options.address);
        let datagrams = udp::bind(&options.as_open_as(&users), &*store, address.ip())?;
        let (datagrams, directing) =
            datagrams.map_or((Vec::new(), None), |bound| (bound.sockets, Some(bound.directing)));
        let observers = Observers::default();
        observers.set_classes(options.event_classes()?);
        let workers = 0..options.workers.get();
        let saves = Saves::new(store.changes());
        let shutdown = ShutdownHandle::new().map_err(ServerError::io("make a shutdown handle"))?;
        let memory = ClientMemory::new(options.client_bytes_max, options.client_patience);
        let descriptors = descriptors::clients_max(usize::MAX, options.workers.get(), metrics.is_some());
        let clients_max_limit = descriptors.min(memory.connections_max());
        let idle_timeout_ms = options.idle_timeout.map_or(0, |timeout| timeout.as_millis().max(1) as u64);
        #[cfg(feature = "scripting")]
        let libraries = crate::scripting::Libraries::default();
        #[cfg(feature = "scripting")]
        crate::scripting::load_stored(&libraries, &*store).map_err(ServerError::Store)?;
        let shared = Arc::new(Shared {
            clients_max: options.clients_max.min(clients_max_limit).into(),
            clients_max_limit,
            idle_timeout_ms: idle_timeout_ms.into(),
            options: options.within(memory.one_bytes_max()),
            memory,
            address,
            store,
            directing,
            users,
            acl_log: Default::default(),
            commits: Default::default(),
            subscribers: Default::default(),
            observers,
            tracking: Default::default(),
            monitors: Default::default(),
            expiries: Default::default(),
            #[cfg(feature = "scripting")]
            scripts: Default::default(),
            #[cfg(feature = "scripting")]
            libraries,
            #[cfg(feature = "scripting")]
            running: Default::default(),
            memcached: Default::default(),
            started: Instant::now(),
            shutdown,
            counter: Default::default(),
            chores: Default::default(),
            saves,
            connected: Default::default(),
            pause: Default::default(),
            slow_log: Default::default(),
            latency_events: Default::default(),
            error_counts: Default::default(),
            remembered: Default::default(),
            reset_totals: Default::default(),
            held_clients: Default::default(),
            clients: Default::default(),
            connections_accepted: Default::default(),
            refused_log: Default::default(),
            denied_log: Default::default(),
            connections_refused: Default::default(),
            commands_processed: Default::default(),
            worker_metrics: workers.map(|_| Arc::new(WorkerMetrics::new())).collect(),
            resumptions: Default::default(),
        });
        Ok(Self { listening, metrics, datagrams, shared })
    }

    /// The address of the server, with the port that the system chose for port 0.
    pub fn local_address(&self) -> SocketAddr {
        self.shared.address
    }

    /// Where metrics are answered, with the port that the system chose for port 0; `None` if nowhere.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(|metrics| metrics.address)
    }

    /// The address for memcached clients alone, if the options name one.
    pub fn memcached_address(&self) -> Option<SocketAddr> {
        internet_address(&self.listening, |listening| listening.protocol == Protocol::Memcached)
    }

    /// The address of encrypted connections, with the port that the system chose for port 0; `None` without TLS.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        internet_address(&self.listening, Listening::is_encrypted)
    }

    /// The address of the first worker's datagrams, where clients ask for the directory; `None` if none are served.
    pub fn udp_address(&self) -> Option<SocketAddr> {
        self.shared.directing.as_ref().map(|directing: &Arc<Directing>| directing.address)
    }

    /// The file of the Unix socket, if the options name one.
    pub fn unix_socket(&self) -> Option<&Path> {
        self.shared.options.unix_socket.as_deref()
    }

    /// Maximum number of connections that are served at once: that of the options, or fewer if half of the descriptors
    /// that the process may have (`ulimit -n`, see [`raise_descriptor_limit`](crate::raise_descriptor_limit)) or half
    /// of the clients' memory are not enough for them. The other half of the descriptors is the store's.
    pub fn clients_max(&self) -> usize {
        self.shared.clients_max()
    }

    /// The handle that stops the server.
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        self.shared.shutdown.clone()
    }

    /// Serves until the shutdown handle, a registered signal or the command `SHUTDOWN` asks it to stop, and the workers
    /// have stopped. The calling thread accepts connections.
    ///
    /// # Errors
    /// When threads or pollers cannot be created, or a worker panicked; everything is stopped by then.
    pub fn run(mut self) -> Result<(), ServerError> {
        let (mut workers, mut helpers) = (Vec::new(), Vec::new());
        let served =
            self.start(&mut workers).and_then(|()| self.start_helpers(&mut helpers)).and_then(|()| {
                let inboxes = workers.iter().map(|worker| Arc::clone(&worker.inbox)).collect();
                Acceptor::new(&self.shared, inboxes).run(&self.listening)
            });
        self.shared.shutdown.shutdown();
        let mut outcome = served.map_err(ServerError::io("serve"));
        for worker in workers {
            worker.inbox.wake();
            let ended = match worker.thread.join() {
                Ok(ended) => ended.map_err(ServerError::io("wait for clients")),
                Err(_) => Err(ServerError::WorkerPanicked),
            };
            outcome = outcome.and(ended);
        }
        // After the workers, which wait for counts and commits.
        self.shared.counter.stop();
        self.shared.chores.stop();
        self.shared.commits.stop();
        for helper in helpers {
            let ended = match helper.join() {
                Ok(ended) => ended.map_err(ServerError::io("keep the store")),
                Err(_) => Err(ServerError::WorkerPanicked),
            };
            outcome = outcome.and(ended);
        }
        outcome
    }

    fn start(&mut self, workers: &mut Vec<RunningWorker>) -> io::Result<()> {
        let mut datagrams = std::mem::take(&mut self.datagrams).into_iter();
        let inbox = |_| Inbox::new(self.shared.memory.bytes_max()).map(Arc::new);
        let inboxes: Vec<Arc<Inbox>> =
            (0..self.shared.options.workers.get()).map(inbox).collect::<io::Result<_>>()?;
        let all: Arc<[Arc<Inbox>]> = inboxes.clone().into();
        for (number, inbox) in inboxes.into_iter().enumerate() {
            let datagrams = datagrams.next();
            let (shared, all) = (Arc::clone(&self.shared), Arc::clone(&all));
            let stop = StopOnEnd(self.shared.shutdown.clone());
            let thread = thread::Builder::new().name(format!("serve-{number}")).spawn(move || {
                let _stop = stop;
                Worker::new(shared, all, datagrams, number)?.run()
            })?;
            workers.push(RunningWorker { inbox, thread });
        }
        Ok(())
    }

    /// Threads that serve no connections: one counts, one does chores, one keeps the store writable, one commits, one
    /// answers with metrics.
    fn start_helpers(&mut self, helpers: &mut Vec<JoinHandle<io::Result<()>>>) -> io::Result<()> {
        type Helper = Box<dyn FnOnce(&Shared) -> io::Result<()> + Send>;
        let count: Helper = Box::new(|shared| {
            shared.counter.run(shared);
            Ok(())
        });
        let chores: Helper = Box::new(|shared| {
            shared.chores.run(|chore| backups::execute(chore, shared));
            Ok(())
        });
        let mut work =
            vec![("serve-count", count), ("serve-chores", chores), ("serve-keep", Box::new(keeper::keep))];
        if self.shared.store.commit_waits() {
            let commit: Helper = Box::new(|shared| {
                shared.commits.run(&*shared.store);
                Ok(())
            });
            work.push(("serve-commit", commit));
        }
        if let Some(metrics) = self.metrics.take() {
            work.push(("serve-metrics", Box::new(|shared| metrics.run(shared))));
        }
        for (name, helper) in work {
            let shared = Arc::clone(&self.shared);
            let stop = StopOnEnd(self.shared.shutdown.clone());
            helpers.push(thread::Builder::new().name(name.to_owned()).spawn(move || {
                let _stop = stop;
                helper(&shared)
            })?);
        }
        Ok(())
    }
}

/// The address of the first of these sockets.
fn internet_address(listening: &[Listening], is_asked: impl Fn(&Listening) -> bool) -> Option<SocketAddr> {
    listening.iter().filter(|listening| is_asked(listening)).find_map(|listening| match listening.endpoint {
        Endpoint::Internet(address) => Some(address),
        Endpoint::Unix(_) => None,
    })
}

struct RunningWorker {
    inbox: Arc<Inbox>,
    thread: JoinHandle<io::Result<()>>,
}

/// Stops the whole server when a worker ends, also by a panic: half a server would leave clients hanging.
struct StopOnEnd(ShutdownHandle);

impl Drop for StopOnEnd {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}
