//! The byte order mark that some programs put in front of text.

use std::io::{self, BufRead};

/// U+FEFF in UTF-8.
const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Skips a byte order mark. Returns its length, 0 if there is none, or `None` if only its beginning is there: what
/// follows that can't be read as text.
pub fn skip(input: &mut impl BufRead) -> io::Result<Option<u64>> {
    for (passed, expected) in MARK.into_iter().enumerate() {
        let next = loop {
            match input.fill_buf() {
                Ok(bytes) => break bytes.first().copied(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        if next == Some(expected) {
            input.consume(1);
        } else if passed == 0 {
            return Ok(Some(0));
        } else {
            return Ok(None);
        }
    }
    Ok(Some(MARK.len() as u64))
}
