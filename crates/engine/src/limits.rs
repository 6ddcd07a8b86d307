//! Limits of items.

/// Maximum bytes of a key.
pub const KEY_BYTES_MAX: usize = 64 << 10;
/// Maximum bytes of a value.
pub const VALUE_BYTES_MAX: usize = 64 << 20;
