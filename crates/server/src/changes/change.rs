//! [`Change`]: what commands tell about keys.

use std::sync::Arc;

use crate::store::DatabaseNumber;

/// A key that a command has changed.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) database: DatabaseNumber,
    pub(crate) key: Arc<[u8]>,
    /// The session of the client; 0 if none has changed it.
    pub(crate) writer: u64,
}
