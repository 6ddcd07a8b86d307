//! The parameters that clients know from Redis, with what they are here.

use std::sync::atomic::Ordering;

use crate::changes::Classes;
use crate::shared::Shared;
use crate::store::DatabaseNumber;

/// A parameter of `CONFIG`.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) get: fn(&Shared) -> String,
    pub(super) change: Change,
}

/// What `CONFIG SET` can do to a parameter. Setting any to the value that it has is allowed.
#[derive(Clone, Copy)]
pub(super) enum Change {
    /// It is given when the server starts.
    Never,
    /// As [`Change::Never`], with the reason.
    AtStart(&'static str),
    /// It takes another number. The function returns whether that is possible.
    Number(fn(&Shared, i64) -> bool),
    /// It takes another text. The function returns why it does not.
    Text(fn(&Shared, &[u8]) -> Result<(), &'static str>),
    /// It takes any text, which cannot be read.
    Secret(fn(&Shared, &[u8])),
    /// The number is remembered, and nothing depends on it: it tunes a representation that Redis has.
    Remembered,
}

/// Why limits of memory cannot be changed.
const DIVIDED: &str = "memory is divided when the server starts: see its option --memory";

const fn fixed(name: &'static str, get: fn(&Shared) -> String) -> Parameter {
    Parameter { name, get, change: Change::Never }
}

/// Sorted by name. `save`, `appendonly` and replication are about Redis' own ways to persist, which do not exist here.
pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "acl-pubsub-default",
        get: |shared| {
            if shared.users.gives_all_channels() { "allchannels" } else { "resetchannels" }.to_owned()
        },
        change: Change::Text(|shared, text| {
            let all_channels = text.eq_ignore_ascii_case(b"allchannels");
            if !all_channels && !text.eq_ignore_ascii_case(b"resetchannels") {
                return Err("argument(s) must be one of the following: allchannels, resetchannels");
            }
            shared.users.give_all_channels(all_channels);
            Ok(())
        }),
    },
    fixed("aclfile", |shared| shared.users.file().map(|path| path.display().to_string()).unwrap_or_default()),
    Parameter {
        name: "acllog-max-len",
        get: |shared| shared.acl_log.len_max().to_string(),
        change: Change::Number(|shared, number| {
            usize::try_from(number).is_ok_and(|len_max| {
                shared.acl_log.set_len_max(len_max);
                true
            })
        }),
    },
    fixed("appendonly", |_| "no".to_owned()),
    fixed("bind", |shared| shared.address.ip().to_string()),
    fixed("cluster-enabled", |_| "no".to_owned()),
    fixed("daemonize", |_| "no".to_owned()),
    fixed("databases", |_| DatabaseNumber::COUNT.to_string()),
    remembered("hash-max-listpack-entries", |shared| shared.remembered("hash-max-listpack-entries", 512)),
    remembered("hash-max-listpack-value", |shared| shared.remembered("hash-max-listpack-value", 64)),
    remembered("hash-max-ziplist-entries", |shared| shared.remembered("hash-max-ziplist-entries", 512)),
    remembered("hash-max-ziplist-value", |shared| shared.remembered("hash-max-ziplist-value", 64)),
    fixed("io-threads", |shared| shared.options.workers.to_string()),
    Parameter {
        name: "latency-monitor-threshold",
        get: |shared| shared.latency_events.threshold_ms().to_string(),
        change: Change::Number(|shared, number| {
            u64::try_from(number).is_ok_and(|ms| {
                shared.latency_events.set_threshold_ms(ms);
                true
            })
        }),
    },
    Parameter {
        name: "maxclients",
        get: |shared| shared.clients_max().to_string(),
        change: Change::Number(|shared, number| {
            let clients_max = usize::try_from(number).unwrap_or(0);
            let is_legal = (1..=shared.clients_max_limit).contains(&clients_max);
            if is_legal {
                shared.clients_max.store(clients_max, Ordering::Relaxed);
            }
            is_legal
        }),
    },
    Parameter {
        name: "maxmemory",
        get: |shared| shared.memory_bytes_max().to_string(),
        change: Change::AtStart(DIVIDED),
    },
    Parameter {
        name: "maxmemory-clients",
        get: |shared| shared.memory.bytes_max().to_string(),
        change: Change::AtStart(DIVIDED),
    },
    fixed("maxmemory-policy", |shared| shared.store.eviction_policy().to_owned()),
    remembered("maxmemory-samples", |shared| shared.remembered("maxmemory-samples", 5)),
    Parameter {
        name: "notify-keyspace-events",
        get: |shared| shared.observers.get().classes().text(),
        change: Change::Text(|shared, letters| {
            let classes =
                Classes::parse(letters).ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")?;
            shared.observers.set_classes(classes);
            Ok(())
        }),
    },
    fixed("port", |shared| shared.address.port().to_string()),
    fixed("proto-max-bulk-len", |shared| shared.options.limits.bulk_bytes_max.to_string()),
    fixed("replicaof", |_| String::new()),
    Parameter {
        name: "requirepass",
        get: |shared| {
            let has_password = !shared.users.default().rules().passwords.is_empty();
            if has_password { "(not shown)" } else { "" }.to_owned()
        },
        change: Change::Secret(|shared, password| shared.users.set_default_password(password)),
    },
    fixed("save", |_| String::new()),
    remembered("set-max-intset-entries", |shared| shared.remembered("set-max-intset-entries", 512)),
    fixed("slaveof", |_| String::new()),
    Parameter {
        name: "slowlog-log-slower-than",
        get: |shared| shared.slow_log.threshold_us().to_string(),
        change: Change::Number(|shared, number| {
            let is_legal = number >= -1;
            if is_legal {
                shared.slow_log.set_threshold_us(number);
            }
            is_legal
        }),
    },
    Parameter {
        name: "slowlog-max-len",
        get: |shared| shared.slow_log.len_max().to_string(),
        change: Change::Number(|shared, number| {
            usize::try_from(number).is_ok_and(|len_max| {
                shared.slow_log.set_len_max(len_max);
                true
            })
        }),
    },
    #[cfg(feature = "tls")]
    fixed("tls-port", |shared| shared.options.tls.as_ref().map_or(0, |tls| tls.address.port()).to_string()),
    fixed("unixsocket", |shared| {
        shared.options.unix_socket.as_ref().map_or_else(String::new, |path| path.display().to_string())
    }),
    fixed("unixsocketperm", |shared| format!("{:o}", shared.options.unix_socket_mode)),
    Parameter {
        name: "timeout",
        get: |shared| shared.idle_timeout().map_or(0, |timeout| timeout.as_secs()).to_string(),
        change: Change::Number(|shared, number| {
            let ms = u64::try_from(number).ok().and_then(|seconds| seconds.checked_mul(1000));
            if let Some(ms) = ms {
                shared.idle_timeout_ms.store(ms, Ordering::Relaxed);
                // So that they look at their clients from now on.
                shared.connected.wake();
            }
            ms.is_some()
        }),
    },
    Parameter {
        name: "tracking-table-max-keys",
        get: |shared| shared.tracking.keys_max().to_string(),
        change: Change::Number(|shared, number| {
            usize::try_from(number).is_ok_and(|keys_max| {
                shared.tracking.set_keys_max(keys_max, &shared.connected);
                true
            })
        }),
    },
];

const fn remembered(name: &'static str, get: fn(&Shared) -> String) -> Parameter {
    Parameter { name, get, change: Change::Remembered }
}
