//! Replies of the meta protocol to bytes.
//!
//! Flags are returned in the order of the request. Quiet requests (`q`) hide the outcome that a client of many requests
//! expects, and nothing else:
//!
//! | command | hidden |
//! |---|---|
//! | `mg` | `EN` |
//! | `ms`, `md` | `HD` |
//! | `ma` | `HD` and `VA`, unless the item is new |

use super::{Echo, Key, MetaArithmetic, MetaDelete, MetaGet, MetaStore, Reply};
use crate::integer;

/// What comes of `ms`, `md` and `ma`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// `HD`.
    Done,
    /// `NS`: the condition of the mode does not hold.
    NotStored,
    /// `EX`: the item has another CAS identifier.
    Exists,
    /// `NF`: there is no item.
    NotFound,
}

/// An item that `mg` found or made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ItemFacts {
    /// The CAS identifier (`c`).
    pub cas: u64,
    /// The client's flags (`f`).
    pub client_flags: u32,
    /// Length of the value in bytes (`s`).
    pub value_bytes: usize,
    /// Seconds until the item expires, before this request changed that (`t`); `None` for never.
    pub ttl_s: Option<u64>,
    /// The same after this request; differs from `ttl_s` only with flags `T` and `N`. A `t` behind those returns it.
    pub new_ttl_s: Option<u64>,
    /// Whether the item was asked for before (`h`).
    pub was_hit: bool,
    /// Seconds since the item was asked for before (`l`).
    pub idle_s: u64,
    /// Whether this request made the item.
    pub is_new: bool,
    /// Whether a client has won the item before (returned as `Z`).
    pub has_winner: bool,
    /// Whether the item is stale (returned as `X`).
    pub is_stale: bool,
    /// Whether this request wins the item (returned as `W`); see [`MetaGet::wins`].
    pub wins: bool,
}

/// The item that `ma` left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CountFacts {
    /// The number.
    pub number: u64,
    /// The CAS identifier (`c`).
    pub cas: u64,
    /// Seconds until the item expires, before this request changed that (`t`); `None` for never.
    pub ttl_s: Option<u64>,
    /// The same after this request; differs from `ttl_s` only with flags `T` and `N`. A `t` behind those returns it.
    pub new_ttl_s: Option<u64>,
    /// Whether this request made the item.
    pub is_new: bool,
}

/// What `me` tells of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DebugFacts {
    /// Seconds until the item expires; `None` for never.
    pub ttl_s: Option<u64>,
    /// Seconds since the item was asked for.
    pub idle_s: u64,
    /// The CAS identifier.
    pub cas: u64,
    /// Whether the item was asked for.
    pub was_hit: bool,
    /// The size class.
    pub class: u32,
    /// Bytes that the item takes.
    pub bytes: u64,
}

impl MetaGet<'_> {
    /// Whether the client wins the right to fill or replace the item: it made the item, or no client has won it before
    /// and it is stale, or expires within the `R` of the request. `recache_ttl_s` is the number of seconds until that
    /// `R`, `None` for never. A `T` counts if it stands in front of `R`.
    pub fn wins(&self, item: &ItemFacts, recache_ttl_s: Option<u64>) -> bool {
        let is_due = || {
            let is_touched = self.echo.flags().find(|(flag, _)| matches!(flag, b'T' | b'R'));
            let ttl_s =
                if is_touched.is_some_and(|(flag, _)| flag == b'T') { item.new_ttl_s } else { item.ttl_s };
            matches!((ttl_s, recache_ttl_s), (Some(ttl_s), Some(recache_s)) if ttl_s < recache_s)
        };
        item.is_new || !item.has_winner && (item.is_stale || self.recache.is_some() && is_due())
    }
}

impl Reply<'_> {
    /// The reply to `mg` where there is an item. `value` is written if the request asks for it.
    #[inline]
    pub fn meta_hit(&mut self, request: &MetaGet<'_>, item: &ItemFacts, value: &[u8]) {
        debug_assert!(!request.with_value || value.len() == item.value_bytes);
        self.meta_hit_header(request, item);
        if request.with_value {
            self.out.reserve(value.len() + 2);
            self.out.extend_from_slice(value);
            self.line_end();
        }
    }

    /// The line of [`Reply::meta_hit`], for values that are not written from one slice. If the request asks for the
    /// value, that and a CR LF must follow.
    #[inline]
    pub fn meta_hit_header(&mut self, request: &MetaGet<'_>, item: &ItemFacts) {
        self.success(request.with_value, item.value_bytes);
        let mut ttl_s = item.ttl_s;
        for (flag, token) in request.echo.flags() {
            match flag {
                b'T' => ttl_s = item.new_ttl_s,
                b'N' if item.is_new => ttl_s = item.new_ttl_s,
                b's' => self.flag(b's', item.value_bytes as u64),
                b't' => self.ttl(ttl_s),
                b'c' => self.flag(b'c', item.cas),
                b'f' => self.flag(b'f', u64::from(item.client_flags)),
                b'l' => self.flag(b'l', item.idle_s),
                b'h' => self.flag(b'h', u64::from(item.was_hit)),
                _ => self.common_flag(flag, token, request.key),
            }
        }
        for (is_set, flag) in [(item.has_winner, b" Z"), (item.is_stale, b" X"), (item.wins, b" W")] {
            if is_set {
                self.out.extend_from_slice(flag);
            }
        }
        self.line_end();
    }

    /// The reply to `mg` where there is no item.
    #[inline]
    pub fn meta_miss(&mut self, request: &MetaGet<'_>) {
        if !request.echo.is_quiet() {
            self.status(b"EN", request.key, &request.echo);
        }
    }

    /// The reply to `ms`. `cas` and `value_bytes` are the stored item's; 0 and the length of the request's value if
    /// nothing was stored.
    pub fn meta_stored(&mut self, request: &MetaStore<'_>, outcome: Outcome, cas: u64, value_bytes: usize) {
        let echo = &request.echo;
        if outcome == Outcome::Done && echo.is_quiet() {
            return;
        }
        self.out.extend_from_slice(outcome.code());
        for (flag, token) in echo.flags() {
            match flag {
                b'c' => self.flag(b'c', cas),
                b's' => self.flag(b's', value_bytes as u64),
                _ => self.common_flag(flag, token, request.store.key),
            }
        }
        self.line_end();
    }

    /// The reply to `md`.
    pub fn meta_deleted(&mut self, request: &MetaDelete<'_>, outcome: Outcome) {
        if outcome != Outcome::Done || !request.echo.is_quiet() {
            self.status(outcome.code(), request.key, &request.echo);
        }
    }

    /// The reply to `ma` where there is a number.
    pub fn meta_counted(&mut self, request: &MetaArithmetic<'_>, item: &CountFacts) {
        let echo = &request.echo;
        if echo.is_quiet() && !item.is_new {
            return;
        }
        let mut number = Vec::with_capacity(integer::TEXT_BYTES_MAX);
        integer::write_unsigned(item.number, &mut number);
        self.success(request.with_value, number.len());
        let mut ttl_s = item.ttl_s;
        for (flag, token) in echo.flags() {
            match flag {
                b'T' => ttl_s = item.new_ttl_s,
                b'N' if item.is_new => ttl_s = item.new_ttl_s,
                b't' => self.ttl(ttl_s),
                b'c' => self.flag(b'c', item.cas),
                _ => self.common_flag(flag, token, request.key),
            }
        }
        self.line_end();
        if request.with_value {
            self.line(&number);
        }
    }

    /// The reply to `ma` where there is no number: any outcome but [`Outcome::Done`].
    pub fn meta_not_counted(&mut self, request: &MetaArithmetic<'_>, outcome: Outcome) {
        debug_assert_ne!(outcome, Outcome::Done);
        self.status(outcome.code(), request.key, &request.echo);
    }

    /// The reply to `me` where there is an item.
    pub fn meta_debug(&mut self, key: Key<'_>, item: &DebugFacts) {
        self.out.extend_from_slice(b"ME ");
        key.write(self.out);
        self.out.extend_from_slice(b" exp=");
        self.seconds(item.ttl_s);
        for (name, number) in [(&b" la="[..], item.idle_s), (b" cas=", item.cas)] {
            self.out.extend_from_slice(name);
            integer::write_unsigned(number, self.out);
        }
        self.out.extend_from_slice(if item.was_hit { b" fetch=yes" } else { b" fetch=no" });
        for (name, number) in [(&b" cls="[..], u64::from(item.class)), (b" size=", item.bytes)] {
            self.out.extend_from_slice(name);
            integer::write_unsigned(number, self.out);
        }
        self.line_end();
    }

    /// The reply to `me` where there is no item.
    pub fn meta_debug_miss(&mut self) {
        self.line(b"EN");
    }

    /// The reply to `mn`.
    pub fn meta_no_operation(&mut self) {
        self.line(b"MN");
    }

    #[inline]
    fn success(&mut self, with_value: bool, value_bytes: usize) {
        if with_value {
            self.out.extend_from_slice(b"VA ");
            integer::write_unsigned(value_bytes as u64, self.out);
        } else {
            self.out.extend_from_slice(b"HD");
        }
    }

    fn status(&mut self, code: &[u8], key: Key<'_>, echo: &Echo<'_>) {
        self.out.extend_from_slice(code);
        for (flag, token) in echo.flags() {
            self.common_flag(flag, token, key);
        }
        self.line_end();
    }

    /// Flag `O` or `k`, which all replies return.
    #[inline]
    fn common_flag(&mut self, flag: u8, token: &[u8], key: Key<'_>) {
        match flag {
            b'O' => {
                self.out.extend_from_slice(b" O");
                self.out.extend_from_slice(token);
            }
            b'k' => {
                self.out.extend_from_slice(b" k");
                key.write(self.out);
                if key.is_base64() {
                    self.out.extend_from_slice(b" b");
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn flag(&mut self, flag: u8, number: u64) {
        self.out.extend_from_slice(&[b' ', flag]);
        integer::write_unsigned(number, self.out);
    }

    fn ttl(&mut self, ttl_s: Option<u64>) {
        self.out.extend_from_slice(b" t");
        self.seconds(ttl_s);
    }

    fn seconds(&mut self, seconds: Option<u64>) {
        match seconds {
            Some(seconds) => integer::write_unsigned(seconds, self.out),
            None => self.out.extend_from_slice(b"-1"),
        }
    }
}

impl Outcome {
    fn code(self) -> &'static [u8] {
        match self {
            Self::Done => b"HD",
            Self::NotStored => b"NS",
            Self::Exists => b"EX",
            Self::NotFound => b"NF",
        }
    }
}
