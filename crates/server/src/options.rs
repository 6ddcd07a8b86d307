//! The options of a server.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use alluvium_protocol::{Limits, memcached};

use crate::acl::Users;
use crate::changes::Classes;
use crate::commands;
use crate::password::Password;
#[cfg(feature = "tls")]
use crate::socket::TlsFiles;
use crate::udp;
use crate::{ServerError, UdpMode};

/// How to serve: plain values, checked together by [`Server::bind`](crate::Server::bind).
///
/// Memory for connections is bounded by `client_bytes_max`; an idle connection holds no buffers.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    // Behaviour.
    /// Where to listen. Default 127.0.0.1:6379; port 0 lets the system choose.
    pub address: SocketAddr,
    /// Where to listen for memcached clients alone. Default none: they may use `address` as well, where the first
    /// request of a connection decides between the protocols.
    pub memcached_address: Option<SocketAddr>,
    /// The first port for requests in datagrams, at the IP address of `address`; each worker has one port, and they
    /// follow each other. 0 lets the system choose all. Only a cache is served so, and only without passwords. Default
    /// none.
    pub udp_port: Option<u16>,
    /// Which workers may execute a request that comes in a datagram. Default all.
    pub udp_mode: UdpMode,
    /// Whether a worker hands such requests to the worker that may execute them, so that clients may send them to any.
    /// Default no: clients send them to the right one.
    pub udp_hands_over: bool,
    /// How long a worker polls for datagrams after the last ones came, before it sleeps. Default not at all.
    pub udp_poll: Duration,
    /// The network interface from which workers take datagrams in frames, past the network stack and the packet filter
    /// (AF_XDP, on Linux): each worker those that come in its own queue of the interface. The IP address of `address`
    /// must be one of the interface. Where that is not possible, the server says so and uses sockets alone. Default
    /// none.
    pub udp_interface: Option<String>,
    /// The file of a Unix socket where clients may connect, too. Default none.
    pub unix_socket: Option<PathBuf>,
    /// Permissions of that file. Default 0o700: the server's user alone.
    pub unix_socket_mode: u32,
    /// Where to listen for encrypted connections. Default nowhere.
    #[cfg(feature = "tls")]
    pub tls: Option<TlsOptions>,
    /// Where to answer HTTP requests for metrics, the server's health and its page. Default nowhere; port 0 lets the
    /// system choose.
    pub metrics_address: Option<SocketAddr>,
    /// Whether addresses that other machines can reach are allowed where there is no password: anyone who reaches the
    /// port can then read and write everything. Metrics never have a password. Default no.
    pub allow_remote: bool,
    /// What clients must give (`AUTH`, `HELLO`) before other commands: the password of the user `default`. Default
    /// none.
    pub password: Option<Password>,
    /// File of users, which is read at the start and by `ACL LOAD`, and written by `ACL SAVE`. Default none: users last
    /// until the server ends.
    pub acl_file: Option<PathBuf>,
    /// The file that these options come from, for `INFO`. Default none.
    pub settings_file: Option<PathBuf>,
    /// Whether `DEBUG` is allowed. Default no, as in Redis.
    pub debug_commands: bool,
    /// Where `SAVE` and `BGSAVE` make backups. Default nowhere: they are refused.
    pub save_directory: Option<PathBuf>,
    /// Number of these backups that are kept: the oldest are removed. Default 3; at least 1 is kept.
    pub saves_kept: usize,
    /// Below which directory `ALLUVIUM.BACKUP` makes backups. Default nowhere: it is refused.
    pub backup_directory: Option<PathBuf>,
    /// Maximum number of connections served at once; one more gets an error and is closed. Default 10,000, as in Redis;
    /// fewer if the process may not have that many descriptors ([`Server::clients_max`](crate::Server::clients_max)).
    pub clients_max: usize,
    /// Maximum bytes of memory that all clients together make the server hold, beside one megabyte or so a worker: what
    /// they have sent and is not executed, their unread replies, queued commands, names of subscriptions. Above half of
    /// it, clients that hold more than 4 KiB wait, one of them excepted; if one waits for `client_patience`, or if it
    /// is all used, those that hold the most are disconnected. A request or reply may take half of
    /// it. Minimum 2 MiB, default 1 GiB.
    pub client_bytes_max: usize,
    /// How long a client waits for memory until the one that holds the most is disconnected. Default one second.
    pub client_patience: Duration,
    /// The memory limit of the process, which is what `CONFIG GET maxmemory` tells. The program that opens the store
    /// divides it. Default none.
    pub memory_bytes_max: Option<u64>,
    /// Close a connection that has sent nothing for this long. Default never, as in Redis.
    pub idle_timeout: Option<Duration>,
    /// Bounds on one request.
    pub limits: Limits,
    /// Bounds on one request of a memcached client.
    pub memcached_limits: memcached::Limits,

    /// Which events about keys are published, by Redis' letters (`notify-keyspace-events`) such as `KEA`. Default none.
    pub keyspace_events: String,

    // Performance: most servers leave these alone.
    /// Threads that serve connections. Default: one per core.
    pub workers: NonZeroUsize,
    /// Read no more from a client that leaves this many bytes of replies unread, until it has read them. Default 1 MiB.
    pub output_pause_bytes: usize,
    /// Close a client whose unread replies grow beyond this (one `MGET` can ask for any amount). Default 256 MiB.
    pub output_bytes_max: usize,
    /// How long a stopping server waits for clients to read their last replies. Default one second.
    pub shutdown_grace: Duration,
}

/// How to serve encrypted connections.
#[cfg(feature = "tls")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// Where to listen; port 0 lets the system choose.
    pub address: SocketAddr,
    /// Certificates and key.
    pub files: TlsFiles,
}

impl ServerOptions {
    /// Checks what can be checked without listening or opening a store. Reads the file of users.
    ///
    /// # Errors
    /// Addresses that other machines can reach although they are not allowed, letters that name no events, and a wrong
    /// file of users.
    pub fn check(&self) -> Result<(), ServerError> {
        self.event_classes()?;
        udp::check(self)?;
        self.as_open_as(&self.users()?).check_addresses()
    }

    /// The users, from the password and the file.
    pub(crate) fn users(&self) -> Result<Users, ServerError> {
        let (password, file) = (self.password.clone(), self.acl_file.as_deref());
        Users::new(commands::catalog(), password, file).map_err(ServerError::Users)
    }

    /// The options by which addresses are checked: with a file, `users` may let everyone in.
    pub(crate) fn as_open_as(&self, users: &Users) -> Self {
        match users.default().needs_no_password() {
            true => Self { password: None, acl_file: None, ..self.clone() },
            false => self.clone(),
        }
    }

    fn check_addresses(&self) -> Result<(), ServerError> {
        self.check_address(self.address)?;
        self.memcached_address.map_or(Ok(()), |address| self.check_address(address))?;
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls
            // Else it is they that must prove who they are.
            && tls.files.client_authorities.is_none()
        {
            self.check_address(tls.address)?;
        }
        self.metrics_address.map_or(Ok(()), |address| self.check_metrics_address(address))
    }

    pub(crate) fn event_classes(&self) -> Result<Classes, ServerError> {
        let letters = &self.keyspace_events;
        Classes::parse(letters.as_bytes()).ok_or_else(|| ServerError::KeyspaceEvents(letters.clone()))
    }

    /// The options with no request or reply larger than `bytes_max`.
    pub(crate) fn within(mut self, bytes_max: usize) -> Self {
        self.limits.frame_bytes_max = self.limits.frame_bytes_max.min(bytes_max);
        self.limits.bulk_bytes_max = self.limits.bulk_bytes_max.min(bytes_max);
        self.memcached_limits.value_bytes_max = self.memcached_limits.value_bytes_max.min(bytes_max);
        self.output_bytes_max = self.output_bytes_max.min(bytes_max);
        self
    }

    pub(crate) fn check_address(&self, address: SocketAddr) -> Result<(), ServerError> {
        let may_have_password = self.password.is_some() || self.acl_file.is_some();
        if address.ip().is_loopback() || self.allow_remote || may_have_password {
            Ok(())
        } else {
            Err(ServerError::RemoteAddress(address))
        }
    }

    pub(crate) fn check_metrics_address(&self, address: SocketAddr) -> Result<(), ServerError> {
        if address.ip().is_loopback() || self.allow_remote {
            Ok(())
        } else {
            Err(ServerError::RemoteMetricsAddress(address))
        }
    }
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], 6379)),
            memcached_address: None,
            udp_port: None,
            udp_mode: UdpMode::Shared,
            udp_hands_over: false,
            udp_poll: Duration::ZERO,
            udp_interface: None,
            unix_socket: None,
            unix_socket_mode: 0o700,
            #[cfg(feature = "tls")]
            tls: None,
            metrics_address: None,
            allow_remote: false,
            password: None,
            acl_file: None,
            settings_file: None,
            debug_commands: false,
            save_directory: None,
            saves_kept: 3,
            backup_directory: None,
            clients_max: 10_000,
            client_bytes_max: 1 << 30,
            client_patience: Duration::from_secs(1),
            memory_bytes_max: None,
            idle_timeout: None,
            limits: Limits::default(),
            memcached_limits: memcached::Limits::default(),
            keyspace_events: String::new(),
            workers: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            output_pause_bytes: 1 << 20,
            output_bytes_max: 256 << 20,
            shutdown_grace: Duration::from_secs(1),
        }
    }
}
