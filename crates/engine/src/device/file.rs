//! The file with a device's figures.
//!
//! ```text
//! DEVICE:  magic 8 bytes "ALVMDEV\0" | major 2 | minor 2 | length of the figures 4 | checksum 8 | the figures as JSON
//! ```
//!
//! The checksum is XXH3-64 over the figures, seeded with that of the 16 bytes before it. A newer minor version may add
//! fields to the figures.

use alluvium_base::Corruption;
use alluvium_base::checksum::checksum64;
use alluvium_model::planner::DeviceFigures;

use crate::error::{Error, Result};

const MAGIC: [u8; 8] = *b"ALVMDEV\0";
const MAJOR: u16 = 1;
const MINOR: u16 = 0;
const HEADER_LEN: usize = 24;
/// Maximum bytes of a sound file.
pub(super) const LEN_MAX: usize = 64 << 10;

/// The bytes of a file with these figures.
pub fn to_bytes(figures: &DeviceFigures) -> Vec<u8> {
    let payload = serde_json::to_vec(figures).expect("figures are plain data");
    let mut bytes = Vec::with_capacity(HEADER_LEN + payload.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&MAJOR.to_le_bytes());
    bytes.extend_from_slice(&MINOR.to_le_bytes());
    bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    let checksum = checksum(&bytes, &payload);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes.extend_from_slice(&payload);
    bytes
}

/// The figures in the bytes of the file `name`.
///
/// # Errors
/// [`Error::Corruption`] for anything that [`to_bytes`] does not make, [`Error::NewerFormat`] for a newer major
/// version.
pub fn parse(name: &str, bytes: &[u8]) -> Result<DeviceFigures> {
    let damaged = |offset: usize, expected: &str, found: String| -> Error {
        Corruption::new(name, offset as u64, expected, found).into()
    };
    let (Some(header), Some(payload)) = (bytes.get(..HEADER_LEN), bytes.get(HEADER_LEN..)) else {
        return Err(damaged(0, "a header of 24 bytes", format!("{} bytes", bytes.len())));
    };
    if header[..8] != MAGIC {
        return Err(damaged(0, "the magic of device figures", format!("{:02x?}", &header[..8])));
    }
    let major = u16::from_le_bytes([header[8], header[9]]);
    if major > MAJOR {
        return Err(Error::NewerFormat { file: name.to_owned(), found: major, supported: MAJOR });
    }
    let len = u32::from_le_bytes([header[12], header[13], header[14], header[15]]) as usize;
    if len != payload.len() || bytes.len() > LEN_MAX {
        return Err(damaged(12, "the length of what follows, 64 KiB in all at most", len.to_string()));
    }
    if header[16..] != checksum(&header[..16], payload).to_le_bytes() {
        return Err(damaged(16, "the checksum of header and figures", "another one".to_owned()));
    }
    let figures: DeviceFigures = serde_json::from_slice(payload)
        .map_err(|error| damaged(HEADER_LEN, "figures of a device", error.to_string()))?;
    figures.validate().map_err(|error| damaged(HEADER_LEN, "rates above 0", error.to_string()))?;
    Ok(figures)
}

fn checksum(header: &[u8], payload: &[u8]) -> u64 {
    checksum64(payload, checksum64(header, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let bytes = to_bytes(&DeviceFigures::default());
        assert_eq!(parse("d", &bytes).unwrap(), DeviceFigures::default());
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                let error = parse("d", &damaged).unwrap_err();
                assert!(matches!(error, Error::Corruption(_) | Error::NewerFormat { .. }), "byte {at}");
            }
            assert!(matches!(parse("d", &bytes[..at]), Err(Error::Corruption(_))));
        }
    }

    #[test]
    fn the_example_of_the_format_document_is_true() {
        let document = include_str!("../../../../docs/format.md");
        let bytes = to_bytes(&DeviceFigures::default());
        let digits: Vec<String> = bytes[..HEADER_LEN].iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(document.contains(&digits.join(" ")), "{}", digits.join(" "));
        let json = String::from_utf8(bytes[HEADER_LEN..].to_vec()).unwrap();
        let written: String = document.chars().filter(|letter| !letter.is_whitespace()).collect();
        assert!(written.contains(&json), "{json}");
    }

    #[test]
    fn sound_checksums_do_not_make_sound_figures() {
        let mut figures = DeviceFigures::default();
        figures.reads.clear();
        assert!(matches!(parse("d", &to_bytes(&figures)), Err(Error::Corruption(_))));
        figures = DeviceFigures { syncs_per_s: f64::NAN, ..DeviceFigures::default() };
        assert!(matches!(parse("d", &to_bytes(&figures)), Err(Error::Corruption(_))));
    }
}
