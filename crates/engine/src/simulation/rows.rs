//! The row cache of a simulated database.

use crate::{Builder, Codec};

/// Gives the database a row cache that the number of its keys determines: none, a small one, or one that compresses.
pub(super) fn with_rows(builder: Builder, keys: u32) -> Builder {
    match keys % 5 {
        0 => builder.row_cache_bytes_max(0),
        1 => builder.row_cache_bytes_max(2 << 20).compress_rows(Codec::Lz4),
        _ => builder.row_cache_bytes_max(128 << 10),
    }
}
