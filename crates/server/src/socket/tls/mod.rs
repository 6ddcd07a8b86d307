//! Encrypted connections, by rustls.

mod identity;
mod stream;

pub(super) use identity::Identity;
pub use identity::TlsFiles;
pub(super) use stream::TlsStream;
