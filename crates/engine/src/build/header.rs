//! Files of one JSON value behind a header with its length and checksum.
//!
//! ```text
//! magic 8 | major 2 | minor 2 | length of the value 4 | checksum 8 | the value as JSON
//! ```
//!
//! The checksum is XXH3-64 over the value, seeded with that of the 16 bytes before it (seed 0). A newer minor version
//! may add fields.

use alluvium_base::Corruption;
use alluvium_base::checksum::checksum64;
use alluvium_io::{OpenMode, Storage};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, IoContext, Result};
use crate::manifest::read_all;

const MAJOR: u16 = 1;
const MINOR: u16 = 0;
const HEADER_BYTES: usize = 24;
/// Maximum bytes of a sound file.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// The bytes of a file with this value.
pub(super) fn encode(magic: [u8; 8], value: &impl Serialize) -> Vec<u8> {
    with_header(magic, &serde_json::to_vec(value).expect("it is plain data"))
}

/// A value behind a sound header.
pub(super) fn with_header(magic: [u8; 8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.extend_from_slice(&magic);
    bytes.extend_from_slice(&MAJOR.to_le_bytes());
    bytes.extend_from_slice(&MINOR.to_le_bytes());
    bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    let checksum = checksum64(payload, checksum64(&bytes, 0));
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// The value in the bytes of the file `name`.
///
/// # Errors
/// [`Error::Corruption`] for anything that [`encode`] does not make, [`Error::NewerFormat`] for a newer major version.
pub(super) fn parse<T: DeserializeOwned>(magic: [u8; 8], name: &str, bytes: &[u8]) -> Result<T> {
    let damaged = |offset: usize, expected: &str, found: String| -> Error {
        Corruption::new(name, offset as u64, expected, found).into()
    };
    let (Some(header), Some(payload)) = (bytes.get(..HEADER_BYTES), bytes.get(HEADER_BYTES..)) else {
        return Err(damaged(0, "a header of 24 bytes", format!("{} bytes", bytes.len())));
    };
    if header[..8] != magic {
        return Err(damaged(
            0,
            &format!("the magic {}", magic.escape_ascii()),
            format!("{:02x?}", &header[..8]),
        ));
    }
    let major = u16::from_le_bytes([header[8], header[9]]);
    if major > MAJOR {
        return Err(Error::NewerFormat { file: name.to_owned(), found: major, supported: MAJOR });
    }
    let len = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
    if len as usize != payload.len() {
        return Err(damaged(12, &format!("the length {}", payload.len()), len.to_string()));
    }
    if header[16..] != checksum64(payload, checksum64(&header[..16], 0)).to_le_bytes() {
        return Err(damaged(16, "the checksum of header and value", "another one".to_owned()));
    }
    serde_json::from_slice(payload)
        .map_err(|error| damaged(HEADER_BYTES, "a value of known fields", error.to_string()))
}

/// The checksum of the file whose bytes these are, as far as its header is sound.
pub(super) fn checksum_of(bytes: &[u8]) -> u64 {
    checksum64(bytes, 0)
}

/// All bytes of a file of this kind.
pub(super) fn read(storage: &dyn Storage, name: &str) -> Result<Vec<u8>> {
    let file = storage.open(name, OpenMode::Read).context(|| format!("opening {name}"))?;
    let len = file.len().context(|| format!("measuring {name}"))?;
    if len > FILE_BYTES_MAX {
        let expected = format!("at most {FILE_BYTES_MAX} bytes");
        return Err(Corruption::new(name, 0, expected, format!("{len} bytes")).into());
    }
    read_all(storage, name)
}

/// Writes a file durably and atomically: after a crash it is there as a whole or not at all. Nothing else may write
/// files of its name with `.new`.
pub(super) fn write(storage: &dyn Storage, name: &str, bytes: &[u8]) -> Result<()> {
    let context = || format!("writing {name}");
    let new = new_name(name);
    if storage.list().context(context)?.contains(&new) {
        storage.remove(&new).context(context)?;
    }
    let file = storage.open(&new, OpenMode::Create).context(context)?;
    file.write_at(bytes, 0).context(context)?;
    file.sync().context(context)?;
    storage.sync_directory().context(context)?;
    storage.rename(&new, name).context(context)?;
    storage.sync_directory().context(context)
}

/// The name of a file while it is written.
pub(super) fn new_name(name: &str) -> String {
    format!("{name}.new")
}
