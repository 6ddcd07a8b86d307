//! [`Event`]: what has happened to a key.

use super::classes::Classes;

/// What has happened to a key, by the name that Redis gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: &'static str,
    pub(crate) class: Classes,
    /// Whether the key is there afterwards.
    pub(crate) is_present: bool,
}

const fn event(name: &'static str, class: Classes) -> Event {
    Event { name, class, is_present: true }
}

const fn end(name: &'static str, class: Classes) -> Event {
    Event { name, class, is_present: false }
}

impl Event {
    pub(crate) const APPEND: Self = event("append", Classes::STRING);
    pub(crate) const COPY_TO: Self = event("copy_to", Classes::GENERIC);
    pub(crate) const DEL: Self = end("del", Classes::GENERIC);
    pub(crate) const EXPIRE: Self = event("expire", Classes::GENERIC);
    pub(crate) const EXPIRED: Self = end("expired", Classes::EXPIRED);
    pub(crate) const HDEL: Self = event("hdel", Classes::HASH);
    pub(crate) const HINCRBY: Self = event("hincrby", Classes::HASH);
    pub(crate) const HINCRBYFLOAT: Self = event("hincrbyfloat", Classes::HASH);
    pub(crate) const HSET: Self = event("hset", Classes::HASH);
    pub(crate) const INCRBY: Self = event("incrby", Classes::STRING);
    pub(crate) const INCRBYFLOAT: Self = event("incrbyfloat", Classes::STRING);
    pub(crate) const KEYMISS: Self = end("keymiss", Classes::MISS);
    pub(crate) const MOVE_FROM: Self = end("move_from", Classes::GENERIC);
    pub(crate) const MOVE_TO: Self = event("move_to", Classes::GENERIC);
    pub(crate) const NEW: Self = event("new", Classes::NEW);
    pub(crate) const PERSIST: Self = event("persist", Classes::GENERIC);
    pub(crate) const RENAME_FROM: Self = end("rename_from", Classes::GENERIC);
    pub(crate) const RENAME_TO: Self = event("rename_to", Classes::GENERIC);
    pub(crate) const RESTORE: Self = event("restore", Classes::GENERIC);
    pub(crate) const SADD: Self = event("sadd", Classes::SET);
    pub(crate) const SDIFFSTORE: Self = event("sdiffstore", Classes::SET);
    pub(crate) const SET: Self = event("set", Classes::STRING);
    pub(crate) const SETBIT: Self = event("setbit", Classes::STRING);
    pub(crate) const SETRANGE: Self = event("setrange", Classes::STRING);
    pub(crate) const SINTERSTORE: Self = event("sinterstore", Classes::SET);
    pub(crate) const SPOP: Self = event("spop", Classes::SET);
    pub(crate) const SREM: Self = event("srem", Classes::SET);
    pub(crate) const SUNIONSTORE: Self = event("sunionstore", Classes::SET);
}
