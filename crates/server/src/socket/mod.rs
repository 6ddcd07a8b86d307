//! Sockets of clients: Internet and Unix, encrypted or not.

mod endpoint;
mod listening;
mod stream;
#[cfg(feature = "tls")]
mod tls;
mod unix_socket;

pub(crate) use endpoint::Endpoint;
pub(crate) use listening::{Listening, for_clients, for_metrics};
pub(crate) use stream::Stream;
#[cfg(feature = "tls")]
pub use tls::TlsFiles;
