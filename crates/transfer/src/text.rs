//! Bytes in text files: as they are if they are UTF-8, otherwise as base64 under another name.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::Mismatch;

/// `bytes` as text, or else as base64 (RFC 4648 §4, padded).
pub fn encode(bytes: &[u8]) -> (Option<&str>, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text), None),
        Err(_) => (None, Some(STANDARD.encode(bytes))),
    }
}

/// The bytes that base64 stands for. `name` is that of the field.
pub fn decode(name: &str, base64: &[u8]) -> Result<Vec<u8>, Mismatch> {
    STANDARD.decode(base64).map_err(|error| {
        let found = error.to_string();
        Mismatch::new(format!("padded base64 in {name}_base64"), lowercase_first(&found))
    })
}

fn lowercase_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_lowercase().chain(characters).collect())
}
