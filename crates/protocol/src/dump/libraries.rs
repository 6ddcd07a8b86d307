//! What `FUNCTION DUMP` returns and `FUNCTION RESTORE` takes: the sources of libraries.

use super::reader::Reader;
use super::{DumpError, checked, finish, string};
use crate::Limits;

/// Comes before the source of each library, in Redis 7.0.
const LIBRARY: u8 = 0xf5;

/// The payload of libraries with these sources.
pub fn encode_libraries<'a>(sources: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut payload = Vec::new();
    for source in sources {
        payload.push(LIBRARY);
        string(source, &mut payload);
    }
    finish(payload)
}

/// The sources in a payload, if together they are no longer than an argument may be, and no more than a request has
/// arguments.
///
/// # Errors
/// [`DumpError`] says what is wrong with the payload.
pub fn decode_libraries(payload: &[u8], limits: Limits) -> Result<Vec<Vec<u8>>, DumpError> {
    let mut reader = Reader::new(checked(payload)?, limits.bulk_bytes_max);
    let mut sources = Vec::new();
    while let Some(kind) = reader.byte() {
        if kind != LIBRARY {
            return Err(DumpError::Kind);
        }
        if sources.len() == limits.arguments_max {
            return Err(DumpError::Content);
        }
        sources.push(reader.string().ok_or(DumpError::Content)?);
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn libraries_of_redis_are_read() {
        // With text as Redis 7.0.15 compresses it.
        let source = format!("#!lua name=a\n{}", "-".repeat(60));
        let content = [&[LIBRARY, 0xc3, 21, 0x40, 73][..], b"\x0d#!lua name=a\n-\xe0\x30\x00\x01--"].concat();
        let Ok(found) = decode_libraries(&finish(content), Limits::default()) else { panic!("refused") };
        assert_eq!(found, [source.into_bytes()]);
    }

    #[test]
    fn what_no_library_can_be_is_refused() {
        let limits = Limits { bulk_bytes_max: 8, arguments_max: 2, ..Limits::default() };
        for (content, expected) in [
            (&b""[..], Ok(0)),
            (b"\xf5\x01a\xf5\x01b", Ok(2)),
            (b"\xf5\x01a\xf5\x01b\xf5\x01c", Err(DumpError::Content)),
            (b"\xf5\x09aaaaaaaaa", Err(DumpError::Content)),
            (b"\xf5", Err(DumpError::Content)),
            (b"\xf5\x02a", Err(DumpError::Content)),
            (b"\x00\x01a", Err(DumpError::Kind)),
            (b"\xf6\x01a", Err(DumpError::Kind)),
        ] {
            let found = decode_libraries(&finish(content.to_vec()), limits).map(|sources| sources.len());
            assert_eq!(found, expected, "{}", content.escape_ascii());
        }
        assert_eq!(decode_libraries(b"bad", limits), Err(DumpError::Footer));
    }

    proptest! {
        #[test]
        fn sources_are_read_back(sources: Vec<Vec<u8>>) {
            let payload = encode_libraries(sources.iter().map(Vec::as_slice));
            prop_assert_eq!(decode_libraries(&payload, Limits::default()), Ok(sources));
        }

        #[test]
        fn arbitrary_content_never_panics(bytes: Vec<u8>) {
            crate::fuzz::dump(&[&[LIBRARY][..], &bytes].concat());
        }
    }
}
