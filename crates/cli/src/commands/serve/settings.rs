//! [`Settings`]: what can be set by options, by the environment and by a file.

use std::env;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, Command, FromArgMatches};
use serde::Deserialize;

use super::log;
#[cfg(target_os = "linux")]
use super::values::Loss;
use super::values::{AccessMode, Acknowledged, Compression, Director, Mode, Net, Size, Time};
use crate::failure::Failure;

/// Before the name of a setting in the environment.
const PREFIX: &str = "ALLUVIUM_";

/// Settings of one source; those that it does not have are `None`.
#[derive(Clone, Debug, Default, PartialEq, Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// Directory of the database; created if absent
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Serve one of several built versions for reading, from this directory: 0001, 0002, …, each a committed build or a
    /// database. ALLUVIUM.VERSION swaps them
    #[arg(long, value_name = "ROOT", conflicts_with_all = ["dir", "cache"])]
    pub versions: Option<PathBuf>,
    /// Number of youngest versions that are kept; older ones are removed after a swap. All by default
    #[arg(long, value_name = "K", requires = "versions")]
    pub keep: Option<NonZeroUsize>,
    /// Read and check all files of a version before it is served
    #[arg(
        long,
        value_name = "YES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        requires = "versions"
    )]
    pub check_versions: Option<bool>,
    /// Serve the database for reading only, as versions always are
    #[arg(
        long,
        value_name = "YES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        conflicts_with = "cache"
    )]
    pub read_only: Option<bool>,
    /// Serve a cache in memory of this size, such as 4GiB, instead of a database; it forgets items when it is full
    #[arg(long, value_name = "SIZE", conflicts_with = "dir")]
    pub cache: Option<Size>,
    /// Bytes of key and value of an item in the cache, on average, by which its memory is divided; 128 by default
    #[arg(long, value_name = "N", requires = "cache")]
    pub cache_item_bytes: Option<usize>,
    /// Keep items that the cache, or the row cache of the database, evicts in compressed blocks within its size, so
    /// that it holds more of them: lz4, or zstd with a dictionary that is learned from the items
    #[arg(long, value_name = "CODEC")]
    pub compress: Option<Compression>,
    /// Keep the cache in this file, where its content is found again after a restart; with the same size and
    /// `--compress` each time
    #[arg(long, value_name = "FILE", requires = "cache")]
    #[cfg(target_os = "linux")]
    pub survive: Option<PathBuf>,
    /// What the content of the file survives: the end of the process, by default, or also a loss of power
    #[arg(long, value_name = "WHAT", requires = "survive")]
    #[cfg(target_os = "linux")]
    pub survive_loss: Option<Loss>,
    /// Begin with an empty cache if the file is damaged, another kind of file, or made with other settings
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", requires = "survive")]
    #[cfg(target_os = "linux")]
    pub survive_reset: Option<bool>,
    /// Second directory of the database, for tables of young levels. A database that has one needs it each time
    #[arg(long, value_name = "DIR")]
    pub young_dir: Option<PathBuf>,
    /// Number of levels whose tables are written to the second directory, 1 by default; 0 empties it
    #[arg(long, value_name = "N")]
    pub young_levels: Option<usize>,
    /// Port on the loopback address, 6379 by default; 0 lets the system choose
    #[arg(long)]
    pub port: Option<u16>,
    /// Address to listen on instead of the loopback address, including the port
    #[arg(long, conflicts_with = "port")]
    pub address: Option<SocketAddr>,
    /// Port on the same address for memcached clients alone; they may use the other port as well
    #[arg(long, value_name = "PORT")]
    pub memcached_port: Option<u16>,
    /// Port on the same address for encrypted connections
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "PORT")]
    pub tls_port: Option<u16>,
    /// File with the server's certificate and those of its issuers, in PEM; one that is replaced is used soon
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE")]
    pub tls_certificate: Option<PathBuf>,
    /// File with the private key of the certificate, in PEM
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// File with certificates of authorities, in PEM: clients of that port must have a certificate by one of them
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE")]
    pub tls_client_authorities: Option<PathBuf>,
    /// First port for requests in datagrams to the cache, at the same IP address; each worker has a port of its own
    #[arg(long, value_name = "PORT", requires = "cache")]
    pub udp: Option<u16>,
    /// Which workers execute requests in datagrams: all (crcw, the default), all for reads and the owner of a key for
    /// writes (crew), or the owner alone (erew)
    #[arg(long, value_name = "MODE", requires = "udp")]
    pub udp_mode: Option<AccessMode>,
    /// Who sends requests in datagrams to the worker that executes them: client (the default), or the server's software
    #[arg(long, value_name = "WHO", requires = "udp")]
    pub udp_direction: Option<Director>,
    /// How long a worker polls for datagrams after the last ones, such as 50us; by default it sleeps at once
    #[arg(long, value_name = "TIME", requires = "udp")]
    pub udp_poll: Option<Time>,
    /// How datagrams come: by sockets (also the meaning of auto, the default), or xdp:IFACE, also in frames of this
    /// network interface, past the network stack and the packet filter (AF_XDP, Linux); what cannot come so comes by
    /// sockets
    #[arg(long, value_name = "HOW", requires = "udp")]
    pub net: Option<Net>,
    /// File of a Unix socket where clients may connect, too
    #[arg(long, value_name = "FILE")]
    pub unix_socket: Option<PathBuf>,
    /// Permissions of that file, in octal; 700 by default
    #[arg(long, value_name = "MODE", requires = "unix_socket")]
    pub unix_socket_mode: Option<Mode>,
    /// Answer HTTP requests for the server's page, metrics and health at this address, such as 127.0.0.1:6380
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    /// Allow addresses that other machines can reach: for clients without a password, and for metrics
    #[arg(long, value_name = "YES", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub allow_remote: Option<bool>,
    /// File whose first line is the password that clients must give; ALLUVIUM_PASSWORD by default
    #[arg(long)]
    pub password_file: Option<PathBuf>,
    /// File of users with their passwords and permissions, as ACL SAVE writes it and Redis reads it
    #[arg(long, value_name = "FILE")]
    pub acl_file: Option<PathBuf>,
    /// Allow DEBUG, with which a client can wait for some time
    #[arg(long, value_name = "YES", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub debug_commands: Option<bool>,
    /// Directory in which SAVE and BGSAVE make backups; by default `saves` in that of the database
    #[arg(long, value_name = "DIR")]
    pub save_dir: Option<PathBuf>,
    /// Number of backups that SAVE and BGSAVE keep, 3 by default
    #[arg(long, value_name = "N")]
    pub saves_kept: Option<NonZeroUsize>,
    /// Directory below which ALLUVIUM.BACKUP makes backups; without one it is refused
    #[arg(long, value_name = "DIR")]
    pub backup_dir: Option<PathBuf>,
    /// Maximum connections served at once; 10000 by default. Reduced if the process may not have that many descriptors
    #[arg(long)]
    pub clients_max: Option<usize>,
    /// Close connections that have sent nothing for this long, such as 10m; never by default
    #[arg(long, value_name = "TIME")]
    pub idle_timeout: Option<Time>,
    /// Bound of the process's memory, such as 256MiB: a quarter of it is for clients, the rest for the store; none by
    /// default
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// Close a client whose unread replies grow beyond this; 256MiB by default
    #[arg(long, value_name = "SIZE")]
    pub output_max: Option<Size>,
    /// Publish events about keys to subscribers, by Redis' letters, such as KEA; none by default
    #[arg(long, value_name = "LETTERS")]
    pub notify_keyspace_events: Option<String>,
    /// Memory for items that gets have read from the device; 64MiB by default
    #[arg(long, value_name = "SIZE")]
    pub row_cache: Option<Size>,
    /// Bound of the database's disk space, such as 100GiB; beyond it writes are refused, except removals. None by
    /// default
    #[arg(long, value_name = "SIZE", conflicts_with = "cache")]
    pub disk_max: Option<Size>,
    /// Drop the oldest items instead of refusing writes: the database is then a cache of that size
    #[arg(long, value_name = "YES", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub drop_oldest: Option<bool>,
    /// Threads that serve connections; one per core by default
    #[arg(long)]
    pub workers: Option<NonZeroUsize>,
    /// Form of the log on standard error
    #[arg(long, value_name = "FORM")]
    pub log: Option<log::Format>,
    /// What is written to the log; info by default
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<log::Weight>,
    /// When a write is acknowledged: buffered, process (survives its death), sync (the default), or an interval such
    /// as 10ms
    #[arg(long)]
    pub durability: Option<Acknowledged>,
}

impl Settings {
    /// The options, before the environment, before the file.
    pub fn gather(options: Self, file: Option<&Path>) -> Result<Self, Failure> {
        let environment = Self::from_environment(|name| env::var_os(name))?;
        let file = file.map(Self::from_file).transpose()?.unwrap_or_default();
        Ok(options.over(environment).over(file))
    }

    fn from_file(path: &Path) -> Result<Self, Failure> {
        let failed = |reason: String| Failure::Failed(format!("{}: {}", path.display(), reason.trim_end()));
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let settings: Self = toml::from_str(&text).map_err(|error| failed(error.to_string()))?;
        if settings.port.is_some() && settings.address.is_some() {
            return Err(failed("`address` includes the port: leave `port` out".to_owned()));
        }
        let chosen = [settings.dir.is_some(), settings.cache.is_some(), settings.versions.is_some()];
        if chosen.into_iter().filter(|is_chosen| *is_chosen).count() > 1 {
            return Err(failed("`dir`, `cache` and `versions` exclude each other".to_owned()));
        }
        Ok(settings)
    }

    /// Reads the variables of all settings in the same way as options.
    fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Failure> {
        let parser = Self::augment_args(Command::new("the environment").no_binary_name(true));
        let mut arguments = Vec::new();
        for option in parser.get_arguments().filter_map(|argument| argument.get_long()) {
            let name = PREFIX.to_owned() + &option.replace('-', "_").to_ascii_uppercase();
            if let Some(value) = variable(&name) {
                let mut argument = OsString::from(format!("--{option}="));
                argument.push(value);
                arguments.push(argument);
            }
        }
        let matches = parser.try_get_matches_from(arguments);
        let settings = matches.and_then(|matches| Self::from_arg_matches(&matches));
        settings.map_err(|error| {
            let text = error.to_string();
            let reason = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            Failure::Usage(format!("in the environment ({PREFIX}…): {reason}"))
        })
    }

    /// These settings, and those of `other` that are missing here.
    fn over(self, other: Self) -> Self {
        // These two exclude each other, as those.
        let is_chosen = self.dir.is_some() || self.cache.is_some() || self.versions.is_some();
        let (dir, cache, versions) = match is_chosen {
            true => (self.dir, self.cache, self.versions),
            false => (other.dir, other.cache, other.versions),
        };
        let is_placed = self.port.is_some() || self.address.is_some();
        let (port, address) = if is_placed { (self.port, self.address) } else { (other.port, other.address) };
        Self {
            dir,
            cache,
            versions,
            keep: self.keep.or(other.keep),
            check_versions: self.check_versions.or(other.check_versions),
            read_only: self.read_only.or(other.read_only),
            cache_item_bytes: self.cache_item_bytes.or(other.cache_item_bytes),
            compress: self.compress.or(other.compress),
            #[cfg(target_os = "linux")]
            survive: self.survive.or(other.survive),
            #[cfg(target_os = "linux")]
            survive_loss: self.survive_loss.or(other.survive_loss),
            #[cfg(target_os = "linux")]
            survive_reset: self.survive_reset.or(other.survive_reset),
            young_dir: self.young_dir.or(other.young_dir),
            young_levels: self.young_levels.or(other.young_levels),
            port,
            address,
            memcached_port: self.memcached_port.or(other.memcached_port),
            #[cfg(feature = "tls")]
            tls_port: self.tls_port.or(other.tls_port),
            #[cfg(feature = "tls")]
            tls_certificate: self.tls_certificate.or(other.tls_certificate),
            #[cfg(feature = "tls")]
            tls_key: self.tls_key.or(other.tls_key),
            #[cfg(feature = "tls")]
            tls_client_authorities: self.tls_client_authorities.or(other.tls_client_authorities),
            udp: self.udp.or(other.udp),
            udp_mode: self.udp_mode.or(other.udp_mode),
            udp_direction: self.udp_direction.or(other.udp_direction),
            udp_poll: self.udp_poll.or(other.udp_poll),
            net: self.net.or(other.net),
            unix_socket: self.unix_socket.or(other.unix_socket),
            unix_socket_mode: self.unix_socket_mode.or(other.unix_socket_mode),
            metrics: self.metrics.or(other.metrics),
            allow_remote: self.allow_remote.or(other.allow_remote),
            password_file: self.password_file.or(other.password_file),
            acl_file: self.acl_file.or(other.acl_file),
            debug_commands: self.debug_commands.or(other.debug_commands),
            save_dir: self.save_dir.or(other.save_dir),
            saves_kept: self.saves_kept.or(other.saves_kept),
            backup_dir: self.backup_dir.or(other.backup_dir),
            clients_max: self.clients_max.or(other.clients_max),
            idle_timeout: self.idle_timeout.or(other.idle_timeout),
            memory: self.memory.or(other.memory),
            output_max: self.output_max.or(other.output_max),
            notify_keyspace_events: self.notify_keyspace_events.or(other.notify_keyspace_events),
            row_cache: self.row_cache.or(other.row_cache),
            disk_max: self.disk_max.or(other.disk_max),
            drop_oldest: self.drop_oldest.or(other.drop_oldest),
            workers: self.workers.or(other.workers),
            log: self.log.or(other.log),
            log_level: self.log_level.or(other.log_level),
            durability: self.durability.or(other.durability),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_environment_is_read_like_options() {
        let read = |pairs: &[(&str, &str)]| {
            Settings::from_environment(|name| {
                pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
            })
        };
        let settings = read(&[
            ("ALLUVIUM_IDLE_TIMEOUT", "10s"),
            ("ALLUVIUM_ALLOW_REMOTE", "true"),
            ("ALLUVIUM_CLIENTS_MAX", "7"),
            ("ALLUVIUM_OUTPUT_MAX", "64MiB"),
            ("ALLUVIUM_MEMORY", "1GiB"),
            ("ALLUVIUM_OTHER", "x"),
        ]);
        let expected = Settings {
            idle_timeout: Some(Time(Duration::from_secs(10))),
            allow_remote: Some(true),
            clients_max: Some(7),
            output_max: Some(Size(64 << 20)),
            memory: Some(Size(1 << 30)),
            ..Settings::default()
        };
        assert_eq!(settings.unwrap(), expected);
        let Err(Failure::Usage(message)) = read(&[("ALLUVIUM_PORT", "many")]) else { panic!("refused") };
        assert!(message.contains("'many' for '--port"), "{message}");
    }

    #[test]
    fn earlier_sources_win() {
        let port = Settings { port: Some(1), workers: NonZeroUsize::new(2), ..Settings::default() };
        let address = "127.0.0.1:3".parse().ok();
        let other =
            Settings { address, workers: NonZeroUsize::new(4), clients_max: Some(5), ..Settings::default() };
        let both = Settings { clients_max: Some(5), ..port.clone() };
        assert_eq!(port.clone().over(other.clone()), both);
        assert_eq!(other.clone().over(port), other);
    }
}
