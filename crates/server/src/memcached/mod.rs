//! Requests of memcached clients: executing and answering them. One file per family; none knows a socket.
//!
//! Items are those of database 0, which Redis clients see as well. An item of another type than a string is absent for
//! memcached clients, and is replaced where they store.

mod arithmetic;
mod authentication;
mod counts;
mod delete;
mod flush;
mod get;
mod item;
mod meta_get;
pub(crate) mod state;
mod statistics;
mod store;
mod touch;
mod writer;

use alluvium_protocol::memcached::{Answer, Error, Reply, Request};

use crate::pause::Paused;
use crate::session::Session;
use crate::shared::Shared;
use crate::store::{Database, DatabaseNumber, StoreError};

pub(crate) use counts::{Count, Counts};
pub(crate) use flush::flush_if_due;
pub(crate) use get::{Form, Lookup};
pub(crate) use writer::Writer;

/// The version of memcached whose behaviour and texts are kept. Clients choose features by it.
const MEMCACHED_VERSION: &str = "1.6.18";

/// The database that memcached clients use.
pub(crate) const DATABASE: DatabaseNumber = DatabaseNumber::FIRST;

/// What requests are executed with.
pub(crate) struct Context<'a> {
    pub(crate) reply: Reply<'a>,
    pub(crate) session: &'a mut Session,
    pub(crate) shared: &'a Shared,
    pub(crate) writer: Writer<'a>,
    pub(crate) counts: &'a mut Counts,
}

impl<'a> Context<'a> {
    fn database(&self) -> &'a dyn Database {
        self.shared.store.database(DATABASE)
    }
}

/// Why a request was not executed.
enum Failure {
    /// An error line of the protocol.
    Line(Error),
    /// The store's error, sent after `SERVER_ERROR `.
    Store(StoreError),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Whether executing the request may write to the store.
pub(crate) fn may_write(request: &Request<'_>) -> bool {
    match request {
        Request::Get(get) => get.touch.is_some(),
        Request::MetaGet(get) => !get::is_plain(get),
        Request::Store { .. }
        | Request::Delete { .. }
        | Request::Arithmetic { .. }
        | Request::Touch { .. }
        | Request::FlushAll { .. }
        | Request::MetaStore(_)
        | Request::MetaDelete(_)
        | Request::MetaArithmetic(_) => true,
        Request::Statistics(_)
        | Request::Version
        | Request::Verbosity { .. }
        | Request::Quit
        | Request::Shutdown(_)
        | Request::MetaNoOperation
        | Request::MetaDebug { .. } => false,
    }
}

/// Whether a request must wait while clients are paused.
pub(crate) fn waits(paused: Paused, request: &Request<'_>) -> bool {
    match paused {
        Paused::Writes => may_write(request),
        Paused::All => true,
    }
}

/// Whether the request only looks items up, so that it may take part in a batch.
pub(crate) fn is_lookup(request: &Request<'_>) -> bool {
    matches!(request, Request::Get(_) | Request::MetaGet(_)) && !may_write(request)
}

/// Executes a request and writes its reply, if it wants one.
pub(crate) fn execute(request: &Request<'_>, context: &mut Context<'_>) {
    let buffered = context.reply.buffered_bytes();
    let outcome = if context.session.is_unrestricted() {
        dispatch(request, context)
    } else {
        authentication::authenticate(request, context);
        Ok(())
    };
    if let Err(failure) = outcome {
        context.reply.rewind(buffered);
        match failure {
            Failure::Line(error) => context.reply.error(error),
            Failure::Store(error) => context.reply.server_error(&error.to_string()),
        }
    }
    if request.is_silent() {
        context.reply.rewind(buffered);
    }
}

fn dispatch(request: &Request<'_>, context: &mut Context<'_>) -> Result<(), Failure> {
    match request {
        Request::Get(request) => get::get(request, context),
        Request::Store { store, .. } => store::store(store, context),
        Request::Delete { key, .. } => delete::delete(*key, context),
        Request::Arithmetic { key, direction, delta, .. } => {
            arithmetic::count(*key, *direction, *delta, context)
        }
        Request::Touch { key, exptime, .. } => touch::touch(*key, *exptime, context),
        Request::FlushAll { delay, .. } => flush::flush_all(*delay, context),
        Request::Statistics(part) => statistics::statistics(*part, context),
        Request::Version => {
            context.reply.version(MEMCACHED_VERSION);
            Ok(())
        }
        Request::Verbosity { .. } => {
            context.reply.answer(Answer::Ok);
            Ok(())
        }
        Request::Quit => {
            context.session.closing = true;
            Ok(())
        }
        Request::Shutdown(_) => Err(Failure::Line(Error::ShutdownDisabled)),
        Request::MetaNoOperation => {
            context.reply.meta_no_operation();
            Ok(())
        }
        Request::MetaGet(request) => meta_get::get(request, context),
        Request::MetaStore(request) => store::meta_store(request, context),
        Request::MetaDelete(request) => delete::meta_delete(request, context),
        Request::MetaArithmetic(request) => arithmetic::meta_count(request, context),
        Request::MetaDebug { key } => meta_get::debug(*key, context),
    }
}
