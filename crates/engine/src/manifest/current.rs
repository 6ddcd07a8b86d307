//! `CURRENT`: the file that names the manifest in use, and its length once it is complete.

use alluvium_base::Corruption;
use alluvium_base::checksum::checksum64;

use super::file::{file_name, parse_file_name};
use crate::error::Result;

/// The file that names the manifest in use.
pub(crate) const CURRENT: &str = "CURRENT";

/// The content of `CURRENT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Current {
    /// The number of the manifest in use.
    pub number: u64,
    /// Its length, if it is complete.
    pub sealed_len: Option<u64>,
}

impl Current {
    /// The bytes of the file.
    pub(super) fn encode(self) -> String {
        let name = file_name(self.number);
        let checksum = checksum64(name.as_bytes(), 0);
        let mut content = format!("{name}\n{checksum:016x}\n");
        if let Some(len) = self.sealed_len {
            let len = format!("{len:016x}");
            content.push_str(&format!("{len}\n{:016x}\n", checksum64(len.as_bytes(), checksum)));
        }
        content
    }
}

/// Reads `CURRENT`.
pub(crate) fn parse_current(content: &[u8]) -> Result<Current> {
    let damaged = || {
        let found = String::from_utf8_lossy(&content[..content.len().min(80)]).into_owned();
        Corruption::new(CURRENT, 0, "a manifest's name and its checksum", format!("{found:?}"))
    };
    let text = std::str::from_utf8(content).map_err(|_| damaged())?;
    let mut lines = text.lines();
    let name = lines.next().ok_or_else(damaged)?;
    let checksum = lines.next().ok_or_else(damaged)?;
    if checksum != format!("{:016x}", checksum64(name.as_bytes(), 0)) {
        return Err(damaged().into());
    }
    let number = parse_file_name(name).ok_or_else(damaged)?;
    let sealed_len = match (lines.next(), lines.next()) {
        (None, _) => None,
        (Some(len), stored) => {
            let seed = checksum64(name.as_bytes(), 0);
            let sound = stored == Some(format!("{:016x}", checksum64(len.as_bytes(), seed)).as_str());
            Some(u64::from_str_radix(len, 16).ok().filter(|_| sound).ok_or_else(damaged)?)
        }
    };
    Ok(Current { number, sealed_len })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_no_changed_byte_passes() {
        for sealed_len in [None, Some(0), Some(u64::MAX)] {
            let current = Current { number: 7, sealed_len };
            let content = current.encode().into_bytes();
            assert_eq!(parse_current(&content).unwrap(), current);
            for at in 0..content.len() {
                let mut damaged = content.clone();
                damaged[at] ^= 1;
                // Line feeds may be lost together with the lines behind them: then the manifest counts as not sealed.
                if let Ok(found) = parse_current(&damaged) {
                    assert_eq!(found.number, 7);
                    assert!(found.sealed_len.is_none() || found == current, "byte {at}");
                }
            }
        }
    }
}
