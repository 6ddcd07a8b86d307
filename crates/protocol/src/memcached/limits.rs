//! How much one peer may make the server hold.

/// Bounds on one request. A request that crosses one is refused as soon as the crossing can be seen: an overlong line
/// closes the connection, an overlong value is skipped as it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of a value, in bytes. Default 1 MiB. memcached's `-I` also counts the key and an item's header of
    /// some 50 bytes; this limit counts the value alone.
    pub value_bytes_max: usize,
    /// Maximum length of a line without its line feed, in bytes. Default 2048, as in memcached, which finds the excess
    /// only where the line comes in several reads. Less than 105 is taken for 105.
    pub line_bytes_max: usize,
    /// Maximum length of a line that asks for many keys (`get`, `gets`, `gat`, `gats`), without its line feed, in
    /// bytes. Default 1 MiB, 4,000 of the longest keys. memcached has no bound for `get` and `gets`, and
    /// `line_bytes_max` for the others.
    pub keys_line_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { value_bytes_max: 1 << 20, line_bytes_max: 2048, keys_line_bytes_max: 1 << 20 }
    }
}
