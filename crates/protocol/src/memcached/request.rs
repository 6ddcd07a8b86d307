//! What a client asks for.

use super::{Direction, Key, Keys, MetaArithmetic, MetaDelete, MetaGet, MetaStore, Statistics};

/// A request. Borrows the bytes it came in and nothing else, so that many requests of a connection can be held at once.
///
/// Expiry times are what the client wrote; [`Expiry::of`](super::Expiry::of) gives their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// `get`, `gets`, `gat`, `gats`: answered with a value for each key that is found, then `END`.
    Get(Get<'a>),
    /// `set`, `add`, `replace`, `append`, `prepend`, `cas`: `STORED`, `NOT_STORED`, `EXISTS` or `NOT_FOUND`.
    Store {
        /// What to store.
        store: Store<'a>,
        /// Whether no reply is wanted, not even of an error.
        noreply: bool,
    },
    /// `delete`: `DELETED` or `NOT_FOUND`.
    Delete {
        /// The item's key.
        key: Key<'a>,
        /// Whether no reply is wanted.
        noreply: bool,
    },
    /// `incr`, `decr`: the new number, or `NOT_FOUND`, or [`Error::NonNumeric`](super::Error::NonNumeric).
    Arithmetic {
        /// The item's key.
        key: Key<'a>,
        /// Up or down.
        direction: Direction,
        /// How far.
        delta: u64,
        /// Whether no reply is wanted.
        noreply: bool,
    },
    /// `touch`: `TOUCHED` or `NOT_FOUND`.
    Touch {
        /// The item's key.
        key: Key<'a>,
        /// The new expiry time.
        exptime: i64,
        /// Whether no reply is wanted.
        noreply: bool,
    },
    /// `flush_all`: `OK`; the items that exist at the moment that `delay` names are deleted then.
    FlushAll {
        /// Now if not positive, else an expiry time.
        delay: i64,
        /// Whether no reply is wanted.
        noreply: bool,
    },
    /// `stats`.
    Statistics(Statistics),
    /// `version`.
    Version,
    /// `verbosity`: `OK`.
    Verbosity {
        /// How much to log.
        level: u32,
        /// Whether no reply is wanted.
        noreply: bool,
    },
    /// `quit`: close the connection once earlier replies are sent, without a reply.
    Quit,
    /// `shutdown`: no reply where it is enabled, [`Error::ShutdownDisabled`](super::Error::ShutdownDisabled) where not;
    /// `None` for a mode that does not exist ([`Error::ShutdownMode`](super::Error::ShutdownMode)).
    Shutdown(Option<Shutdown>),
    /// `mn`: `MN`, at once.
    MetaNoOperation,
    /// `mg`.
    MetaGet(MetaGet<'a>),
    /// `ms`.
    MetaStore(MetaStore<'a>),
    /// `md`.
    MetaDelete(MetaDelete<'a>),
    /// `ma`.
    MetaArithmetic(MetaArithmetic<'a>),
    /// `me`: what is known of an item, or `EN`.
    MetaDebug {
        /// The item's key.
        key: Key<'a>,
    },
}

/// `get` and its kin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Get<'a> {
    /// The items' keys.
    pub keys: Keys<'a>,
    /// Whether values are returned with their CAS identifiers (`gets`, `gats`).
    pub with_cas: bool,
    /// The new expiry time of the items found (`gat`, `gats`).
    pub touch: Option<i64>,
}

/// What to store and on which condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store<'a> {
    /// The item's key.
    pub key: Key<'a>,
    /// The client's flags; ignored by [`StoreMode::Append`] and [`StoreMode::Prepend`].
    pub client_flags: u32,
    /// The expiry time; ignored by [`StoreMode::Append`] and [`StoreMode::Prepend`].
    pub exptime: i64,
    /// The condition on the item that exists, and how the value is combined with its value.
    pub mode: StoreMode,
    /// The CAS identifier that the item must have: else `EXISTS`, and `NOT_FOUND` if there is no item and the mode is
    /// [`StoreMode::Set`]. Never set for [`StoreMode::Add`] and [`StoreMode::Replace`], whose requests are normalized:
    /// memcached ignores it for the former and takes the latter for `cas`.
    pub compare: Option<u64>,
    /// The value.
    pub value: &'a [u8],
}

impl Store<'_> {
    /// Whether the value is stored whatever item exists.
    pub fn is_unconditional(&self) -> bool {
        self.mode == StoreMode::Set && self.compare.is_none()
    }
}

/// The condition of a storage command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMode {
    /// Always.
    Set,
    /// If there is no item, else `NOT_STORED`.
    Add,
    /// If there is an item, else `NOT_STORED`.
    Replace,
    /// After the value of an item, `NOT_STORED` if there is none.
    Append,
    /// In front of the value of an item, `NOT_STORED` if there is none.
    Prepend,
}

/// How `shutdown` ends the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// `shutdown`.
    Now,
    /// `shutdown graceful`: stop accepting, then end.
    Graceful,
}

impl Request<'_> {
    /// Whether the request ends in `noreply`: nothing is written, whatever comes of it. Quiet meta requests are not
    /// meant: which of their outcomes are hidden is up to [`Reply`](super::Reply).
    pub fn is_silent(&self) -> bool {
        match self {
            Self::Store { noreply, .. }
            | Self::Delete { noreply, .. }
            | Self::Arithmetic { noreply, .. }
            | Self::Touch { noreply, .. }
            | Self::FlushAll { noreply, .. }
            | Self::Verbosity { noreply, .. } => *noreply,
            _ => false,
        }
    }
}
