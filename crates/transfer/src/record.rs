//! [`Record`]: one item with the name of its keyspace.

/// Maximum length of a key in a file, in bytes.
pub const KEY_BYTES_MAX: usize = 64 << 10;
/// Maximum length of a value in a file, in bytes. A store may allow less.
pub const VALUE_BYTES_MAX: usize = 64 << 20;

/// Maximum length of one record's line or row, in bytes: each byte of key and value may be an escape of six characters.
pub(crate) const TEXT_BYTES_MAX: u64 = 6 * (KEY_BYTES_MAX + VALUE_BYTES_MAX) as u64 + (64 << 10);

/// One item of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Name of the keyspace; empty if the file names none.
    pub keyspace: String,
    /// The key, at most [`KEY_BYTES_MAX`] bytes.
    pub key: Vec<u8>,
    /// The value, at most [`VALUE_BYTES_MAX`] bytes.
    pub value: Vec<u8>,
    /// Opaque to the store; 0 if the file names none.
    pub flags: u32,
    /// Time from which on the item is absent, in milliseconds since 1970; `None`: never.
    pub expires_at_ms: Option<u64>,
}

impl Record {
    /// What is too long, and how long it is.
    pub(crate) fn excess(&self) -> Option<(String, String)> {
        let limits = [("key", self.key.len(), KEY_BYTES_MAX), ("value", self.value.len(), VALUE_BYTES_MAX)];
        let (name, len, max) = limits.into_iter().find(|(_, len, max)| len > max)?;
        Some((format!("a {name} of at most {max} bytes"), format!("{len} bytes")))
    }
}
