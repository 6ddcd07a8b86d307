//! `alluvium serve`.

mod log;
mod password;
mod settings;
mod shares;
mod values;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium::Db;
use alluvium_base::units;
use alluvium_io::give_back_freed_memory;
use alluvium_server::{
    CacheSettings, CacheStore, Compressed, Server, ServerError, ServerOptions, Store, Versions,
    VersionsSettings, VersionsStore, raise_descriptor_limit,
};

#[cfg(target_os = "linux")]
use alluvium_server::{Opened, Survive, SurvivingFile};
#[cfg(feature = "tls")]
use alluvium_server::{TlsFiles, TlsOptions};

use crate::database::YoungOptions;
use crate::failure::Failure;
use crate::service_manager;
use settings::Settings;
use shares::Shares;
#[cfg(target_os = "linux")]
use values::Loss;
use values::{Compression, Director, Net};

/// Options of `serve`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// File with settings in TOML: the options below by their long names. Options, and variables such as
    /// ALLUVIUM_PORT, come before it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check all settings, say what is wrong, and do not serve
    #[arg(long)]
    check_config: bool,
    #[command(flatten)]
    settings: Settings,
}

/// Serves until SIGTERM or SIGINT, then closes the database.
pub fn run(options: &Options) -> Result<(), Failure> {
    let settings = Settings::gather(options.settings.clone(), options.config.as_deref())?;
    if settings.dir.is_none() && settings.cache.is_none() && settings.versions.is_none() {
        return Err(Failure::Usage(
            "give the directory of the database: --dir, ALLUVIUM_DIR or `dir` in the file; the size of a cache: \
             --cache; or a directory of built versions: --versions"
                .to_owned(),
        ));
    }
    if settings.drop_oldest == Some(true) && (settings.dir.is_none() || settings.disk_max.is_none()) {
        return Err(Failure::Usage(
            "--drop-oldest keeps a database within a size: give its directory and --disk-max".to_owned(),
        ));
    }
    let mut server_options = ServerOptions {
        settings_file: options.config.as_deref().and_then(|file| file.canonicalize().ok()),
        ..server_options(&settings)?
    };
    let limit = settings.memory.map(|size| size.0);
    // What receives and sends datagrams takes as much as what serves connections, the rings between workers no more.
    // Frames take as much again.
    let parts = 1
        + usize::from(settings.udp.is_some())
        + usize::from(server_options.udp_hands_over)
        + usize::from(server_options.udp_interface.is_some());
    let users = server_options.workers.get() * parts;
    let shares = limit.map(|limit| Shares::of(limit, users)).transpose()?;
    if let Some(shares) = shares {
        server_options.client_bytes_max = shares.clients as usize;
    }
    if let (Some(limit), Some(shares), Some(cache)) = (limit, shares, settings.cache) {
        shares.check_cache(limit, cache.0)?;
        // A database with a limit does the same.
        give_back_freed_memory();
    }
    server_options.check().map_err(failure)?;
    if options.check_config {
        println!("the settings are in order");
        return Ok(());
    }
    log::start(settings.log.unwrap_or_default(), settings.log_level.unwrap_or_default());
    // Before the database is opened, since it takes its share of the descriptors. If the limit cannot be raised, all
    // users get fewer.
    let _ = raise_descriptor_limit();
    let listeners = service_manager::listeners()?;
    let asked = server_options.clients_max;
    let (server, db, served) = match (&settings.dir, &settings.versions) {
        (_, Some(root)) => {
            let store = built(root, &settings, shares)?;
            let number = store.served().number;
            let served = format!("version {number} in {}", root.display());
            let server = Server::on_listeners(server_options, listeners, Arc::new(store)).map_err(failure)?;
            (server, None, served)
        }
        (Some(dir), None) => {
            let db = open(dir, &settings, shares)?;
            let server = Server::bind_to(server_options, listeners, db.clone()).map_err(failure)?;
            (server, Some(db), dir.display().to_string())
        }
        (None, None) => {
            let store = cache(&settings, server_options.workers.get())?;
            let served =
                format!("a cache of {}{}", units::format_bytes(store.memory_bytes_max()), found(&store));
            let server = Server::on_listeners(server_options, listeners, Arc::new(store)).map_err(failure)?;
            (server, None, served)
        }
    };
    server.shutdown_handle().on_termination_signals()?;
    tracing::info!(
        store = served,
        tls = log::shown(server.tls_address()),
        unix_socket = log::shown(server.unix_socket().map(Path::display)),
        udp = log::shown(server.udp_address()),
        memcached = log::shown(server.memcached_address()),
        metrics = log::shown(server.metrics_address().map(|address| format!("http://{address}/metrics"))),
        address = %server.local_address(),
        "serving"
    );
    let clients_max = server.clients_max();
    if clients_max < asked {
        tracing::warn!(
            clients_max,
            asked,
            "fewer clients are served at once: half of the descriptors (`ulimit -n`) are for the database"
        );
    }
    // Clients that connect from now on are answered as soon as the workers run.
    service_manager::notify(&format!("READY=1\nSTATUS=Serving at {}", server.local_address()));
    server.run().map_err(failure)?;
    tracing::info!("no more clients are served");
    service_manager::notify("STOPPING=1\nSTATUS=Closing the database");
    if let Some(db) = db {
        db.close()?;
        tracing::info!("the database is closed");
    }
    Ok(())
}

/// The log takes 230,000 items then, from the beginning. Clients of servers write few items again and again, and what
/// is overwritten in the log is not written to tables. A log for 100,000 items would take 8,000, and background work
/// would take longer than the writes.
const EXPECTED_ITEMS: u64 = 20_000_000;

fn open(dir: &Path, settings: &Settings, shares: Option<Shares>) -> Result<Db, Failure> {
    let young = YoungOptions::new(settings.young_dir.clone(), settings.young_levels);
    let mut builder =
        Db::builder(dir).durability(settings.durability.unwrap_or_default().0).expected_items(EXPECTED_ITEMS);
    if let Some(bytes) = settings.row_cache {
        builder = builder.row_cache_bytes_max(bytes.0);
    }
    if let Some(Compression(codec)) = settings.compress {
        builder = builder.compress_rows(codec);
    }
    if let Some(bytes) = settings.disk_max {
        builder = builder.disk_bytes_max(bytes.0);
    }
    builder = builder.drop_oldest(settings.drop_oldest.unwrap_or_default());
    let mut builder = young.give(builder);
    builder = builder.read_only(settings.read_only.unwrap_or_default());
    if let Some(shares) = shares {
        // Last, because it counts what the process has taken by now.
        builder = builder.process_memory_bytes_max(shares.store);
    }
    Ok(builder.open()?)
}

/// Number of versions that may be open at a time: the one that is served, the one before, and the next.
const VERSIONS_OPEN: u64 = 3;

fn built(root: &Path, settings: &Settings, shares: Option<Shares>) -> Result<VersionsStore, Failure> {
    let row_cache = settings.row_cache.map(|bytes| bytes.0);
    let open = move |path: &Path| {
        let mut builder = Db::builder(path).read_only(true);
        if let Some(bytes) = row_cache {
            builder = builder.row_cache_bytes_max(bytes);
        }
        if let Some(shares) = shares {
            builder = builder.memory_bytes_max(shares.store / VERSIONS_OPEN);
        }
        builder.open()
    };
    let versions = VersionsSettings {
        root: root.to_owned(),
        keep: settings.keep.map(NonZeroUsize::get),
        checks: settings.check_versions.unwrap_or_default(),
        open: Box::new(open),
    };
    VersionsStore::open(versions).map_err(|error| Failure::Failed(error.to_string()))
}

fn cache(settings: &Settings, threads: usize) -> Result<CacheStore, Failure> {
    let given = CacheSettings {
        memory_bytes_max: settings.cache.map_or(0, |size| size.0),
        item_bytes_mean: settings.cache_item_bytes,
        compressed: settings.compress.map(|Compression(codec)| Compressed { codec, ..Compressed::default() }),
        is_directed: settings.udp.is_some(),
    };
    let failed =
        |error: &dyn std::fmt::Display| Failure::Failed(format!("the cache cannot be opened: {error}"));
    #[cfg(target_os = "linux")]
    if let Some(path) = settings.survive.clone() {
        let survive = settings.survive_loss.map_or(Survive::Process, |Loss(survive)| survive);
        let file = SurvivingFile { path, survive, reset: settings.survive_reset.unwrap_or_default() };
        return CacheStore::surviving(given, threads, file).map_err(|error| failed(&error));
    }
    CacheStore::new(given, threads).map_err(|error| failed(&error))
}

/// How the content of the cache was found, for people.
#[cfg(target_os = "linux")]
fn found(store: &CacheStore) -> &'static str {
    match store.opened_file() {
        None => "",
        Some(Opened::New) => " in a new file",
        Some(Opened::Complete) => " with all items of its file",
        Some(Opened::AfterCrash) => " with the items that survived a crash in its file",
        Some(Opened::Dropped) => " whose items were dropped, since the system failed while its file was open",
    }
}

/// Nothing is kept in files here.
#[cfg(not(target_os = "linux"))]
fn found(_store: &CacheStore) -> &'static str {
    ""
}

fn server_options(settings: &Settings) -> Result<ServerOptions, Failure> {
    let defaults = ServerOptions::default();
    let loopback = SocketAddr::from(([127, 0, 0, 1], settings.port.unwrap_or(defaults.address.port())));
    let address = settings.address.unwrap_or(loopback);
    let save_directory = settings.save_dir.clone();
    Ok(ServerOptions {
        address,
        memcached_address: settings.memcached_port.map(|port| SocketAddr::new(address.ip(), port)),
        #[cfg(feature = "tls")]
        tls: tls(settings, address)?,
        udp_port: settings.udp,
        udp_mode: settings.udp_mode.map_or(defaults.udp_mode, |mode| mode.0),
        udp_hands_over: settings.udp_direction == Some(Director::Software),
        udp_poll: settings.udp_poll.map_or(defaults.udp_poll, |time| time.0),
        udp_interface: match &settings.net {
            Some(Net::Xdp(interface)) => Some(interface.clone()),
            Some(Net::Auto | Net::Sockets) | None => defaults.udp_interface.clone(),
        },
        unix_socket: settings.unix_socket.clone(),
        unix_socket_mode: settings.unix_socket_mode.map_or(defaults.unix_socket_mode, |mode| mode.0),
        metrics_address: settings.metrics,
        allow_remote: settings.allow_remote.unwrap_or(defaults.allow_remote),
        password: password::read(settings.password_file.as_deref())?,
        acl_file: settings.acl_file.clone(),
        save_directory: save_directory.or_else(|| settings.dir.as_ref().map(|dir| dir.join("saves"))),
        saves_kept: settings.saves_kept.map_or(defaults.saves_kept, NonZeroUsize::get),
        backup_directory: settings.backup_dir.clone(),
        debug_commands: settings.debug_commands.unwrap_or(defaults.debug_commands),
        clients_max: settings.clients_max.unwrap_or(defaults.clients_max),
        idle_timeout: settings.idle_timeout.map(|time| time.0),
        workers: settings.workers.unwrap_or(defaults.workers),
        keyspace_events: settings.notify_keyspace_events.clone().unwrap_or_default(),
        memory_bytes_max: settings.memory.map(|size| size.0),
        output_bytes_max: settings.output_max.map_or(defaults.output_bytes_max, |size| size.0 as usize),
        ..defaults
    })
}

/// How encrypted connections are served, if they are.
#[cfg(feature = "tls")]
fn tls(settings: &Settings, address: SocketAddr) -> Result<Option<TlsOptions>, Failure> {
    let Some(port) = settings.tls_port else { return Ok(None) };
    let (Some(certificate), Some(key)) = (settings.tls_certificate.clone(), settings.tls_key.clone()) else {
        return Err(Failure::Usage(
            "encrypted connections need a certificate and its key: --tls-certificate, --tls-key".to_owned(),
        ));
    };
    let files = TlsFiles { certificate, key, client_authorities: settings.tls_client_authorities.clone() };
    Ok(Some(TlsOptions { address: SocketAddr::new(address.ip(), port), files }))
}

fn failure(error: ServerError) -> Failure {
    Failure::Failed(error.to_string())
}
