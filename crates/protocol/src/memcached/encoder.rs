//! Requests as a client writes them.

use super::{Detail, Direction, Echo, Key, Request, Shutdown, Statistics, Store, StoreMode};
use crate::integer;

impl Request<'_> {
    /// Appends the request to `out`, for clients and tests: parsed again it is the same request.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Get(get) => {
                word(if get.touch.is_some() { b"gat" } else { b"get" }, out);
                if get.with_cas {
                    out.push(b's');
                }
                if let Some(exptime) = get.touch {
                    out.push(b' ');
                    integer::write(exptime, out);
                }
                for key in get.keys.iter() {
                    argument(key.text(), out);
                }
            }
            Self::Store { store, noreply } => return self::store(store, *noreply, out),
            Self::Delete { key, noreply } => with_key(b"delete", *key, None, *noreply, out),
            Self::Arithmetic { key, direction, delta, noreply } => {
                let command = if *direction == Direction::Increment { b"incr" } else { b"decr" };
                with_key(command, *key, Some(i128::from(*delta)), *noreply, out);
            }
            Self::Touch { key, exptime, noreply } => {
                with_key(b"touch", *key, Some(i128::from(*exptime)), *noreply, out);
            }
            Self::FlushAll { delay, noreply } => {
                word(b"flush_all ", out);
                integer::write(*delay, out);
                self::noreply(*noreply, out);
            }
            Self::Statistics(statistics) => self::statistics(*statistics, out),
            Self::Version => word(b"version", out),
            Self::Verbosity { level, noreply } => {
                word(b"verbosity ", out);
                integer::write_unsigned(u64::from(*level), out);
                self::noreply(*noreply, out);
            }
            Self::Quit => word(b"quit", out),
            Self::Shutdown(mode) => word(
                match mode {
                    Some(Shutdown::Now) => b"shutdown",
                    Some(Shutdown::Graceful) => b"shutdown graceful",
                    None => b"shutdown unknown",
                },
                out,
            ),
            Self::MetaNoOperation => word(b"mn", out),
            Self::MetaGet(request) => meta(b"mg", request.key, &request.echo, out),
            Self::MetaDelete(request) => meta(b"md", request.key, &request.echo, out),
            Self::MetaArithmetic(request) => meta(b"ma", request.key, &request.echo, out),
            Self::MetaStore(request) => {
                word(b"ms", out);
                argument(request.store.key.text(), out);
                out.push(b' ');
                integer::write_unsigned(request.store.value.len() as u64, out);
                flags(&request.echo, out);
                return value(request.store.value, out);
            }
            Self::MetaDebug { key } => {
                word(b"me", out);
                argument(key.text(), out);
                if key.is_base64() {
                    word(b" b", out);
                }
            }
        }
        line_end(out);
    }
}

fn store(store: &Store<'_>, is_silent: bool, out: &mut Vec<u8>) {
    word(
        match (store.mode, store.compare) {
            (_, Some(_)) => b"cas",
            (StoreMode::Set, None) => b"set",
            (StoreMode::Add, None) => b"add",
            (StoreMode::Replace, None) => b"replace",
            (StoreMode::Append, None) => b"append",
            (StoreMode::Prepend, None) => b"prepend",
        },
        out,
    );
    argument(store.key.text(), out);
    out.push(b' ');
    integer::write_unsigned(u64::from(store.client_flags), out);
    out.push(b' ');
    integer::write(store.exptime, out);
    out.push(b' ');
    integer::write_unsigned(store.value.len() as u64, out);
    if let Some(cas) = store.compare {
        out.push(b' ');
        integer::write_unsigned(cas, out);
    }
    noreply(is_silent, out);
    value(store.value, out);
}

fn with_key(command: &[u8], key: Key<'_>, number: Option<i128>, is_silent: bool, out: &mut Vec<u8>) {
    word(command, out);
    argument(key.text(), out);
    if let Some(number) = number {
        out.extend_from_slice(format!(" {number}").as_bytes());
    }
    noreply(is_silent, out);
}

fn statistics(statistics: Statistics, out: &mut Vec<u8>) {
    word(b"stats", out);
    let name: &[u8] = match statistics {
        Statistics::General => return,
        Statistics::Items => b"items",
        Statistics::Slabs => b"slabs",
        Statistics::Sizes => b"sizes",
        Statistics::SizesEnable => b"sizes_enable",
        Statistics::SizesDisable => b"sizes_disable",
        Statistics::Settings => b"settings",
        Statistics::Connections => b"conns",
        Statistics::Detail(Detail::On) => b"detail on",
        Statistics::Detail(Detail::Off) => b"detail off",
        Statistics::Detail(Detail::Dump) => b"detail dump",
        Statistics::CacheDump { slab, items_max } => {
            out.extend_from_slice(format!(" cachedump {slab} {items_max}").as_bytes());
            return;
        }
        Statistics::Reset => b"reset",
    };
    argument(name, out);
}

fn meta(command: &[u8], key: Key<'_>, echo: &Echo<'_>, out: &mut Vec<u8>) {
    word(command, out);
    argument(key.text(), out);
    flags(echo, out);
}

fn flags(echo: &Echo<'_>, out: &mut Vec<u8>) {
    for (flag, token) in echo.flags() {
        argument(&[flag], out);
        word(token, out);
    }
}

fn value(value: &[u8], out: &mut Vec<u8>) {
    line_end(out);
    out.extend_from_slice(value);
    line_end(out);
}

fn noreply(is_silent: bool, out: &mut Vec<u8>) {
    if is_silent {
        word(b" noreply", out);
    }
}

fn argument(text: &[u8], out: &mut Vec<u8>) {
    out.push(b' ');
    out.extend_from_slice(text);
}

fn word(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(text);
}

fn line_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}
