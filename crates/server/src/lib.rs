//! A server that Redis and memcached clients can talk to, over an Alluvium store.
//!
//! Worker threads each run a readiness loop over non-blocking sockets; there is no async runtime. Pipelined and
//! concurrent gets are looked up together, so that their flash reads overlap, and replies leave in one write per client
//! and round. One file per command, one table of them all: `commands/`;
//! requests of memcached: `memcached/`.
//!
//! Non-goals: lists, sorted sets and streams.
#![forbid(unsafe_code)]

mod acceptor;
mod acl;
mod answer;
mod backups;
mod cache;
mod changes;
mod chores;
mod client;
mod client_memory;
mod clients;
mod commands;
mod commits;
mod connection;
mod connections;
mod counter;
mod data;
mod descriptors;
mod engine;
mod error;
mod error_counts;
mod extended;
mod get_batch;
mod glob;
mod inbox;
mod keeper;
mod latency_events;
mod listeners;
mod long_reply;
mod mail;
mod memcached;
mod metrics;
mod monitors;
mod occasional;
mod options;
mod password;
mod pause;
mod protocol;
mod pubsub;
mod queued_commands;
mod random;
mod readiness;
mod reply_room;
mod round_writes;
mod saves;
#[cfg(feature = "scripting")]
mod scripting;
mod server;
mod session;
mod shared;
mod shutdown;
mod slow_log;
mod socket;
mod store;
mod tracking;
mod udp;
mod versions;
mod worker;

pub use alluvium_cache::{Codec, Compressed};
#[cfg(target_os = "linux")]
pub use alluvium_cache::{Opened, Survive, SurviveError};
pub use alluvium_protocol::Limits;
/// Which workers may execute a request that comes in a datagram.
pub use alluvium_protocol::datagram::Mode as UdpMode;
pub use alluvium_protocol::memcached::Limits as MemcachedLimits;
#[cfg(target_os = "linux")]
pub use cache::SurvivingFile;
pub use cache::{CacheSettings, CacheStore};
pub use descriptors::raise_descriptor_limit;
pub use error::ServerError;
pub use listeners::Listeners;
pub use metrics::{Metric, MetricKind, MetricSink};
pub use options::ServerOptions;
#[cfg(feature = "tls")]
pub use options::TlsOptions;
pub use password::Password;
pub use server::Server;
pub use shutdown::ShutdownHandle;
#[cfg(feature = "tls")]
pub use socket::TlsFiles;
pub use store::{
    Attributes, Change, CollectionId, Database, DatabaseNumber, Databases, Found, FoundOrLong, Keep, Kind,
    LibraryChange, LongValue, Mark, NoCollections, NothingStored, Report, ReportValue, ServedVersion, Store,
    StoreError, StoreHealth, Versions, Watch, WrongType,
};
pub use versions::{OpenVersion, VersionsSettings, VersionsStore};
