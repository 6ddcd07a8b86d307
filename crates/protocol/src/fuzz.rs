//! Entry points for fuzzing: any bytes go in, a broken promise is a panic.

mod datagram;
mod memcached;

pub use datagram::{datagram, datagram_samples};
pub use memcached::memcached;
#[cfg(test)]
pub(crate) use memcached::{Event, events_in_pieces};

use crate::dump::{self, Dumped};
use crate::{Limits, Parser, Progress, ProtocolError, Value, request};

/// Limits small enough that short inputs reach them.
const LIMITS: Limits =
    Limits { bulk_bytes_max: 64, arguments_max: 16, inline_bytes_max: 48, frame_bytes_max: 256 };

type Frames = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

/// Parses `bytes` as requests, whole and in pieces, and as replies.
///
/// # Panics
/// When the pieces give other frames than the whole, when a frame crosses a limit, or when a request written again is
/// read differently. Never otherwise, whatever the bytes.
pub fn resp(bytes: &[u8]) {
    let (frames, error) = frames_in_pieces(bytes, bytes.len().max(1));
    let step = bytes.first().map_or(1, |byte| usize::from(*byte) % 7 + 1);
    assert_eq!(frames_in_pieces(bytes, step), (frames.clone(), error), "pieces of {step} bytes");
    for frame in frames.iter().filter(|frame| !frame.is_empty()) {
        let mut again = Vec::new();
        request::encode(frame, &mut again);
        let whole = crate::parse(&again, Limits::default()).expect("written by us");
        assert_eq!(whole, Some((frame.clone(), again.len())));
        assert!(frame.len() <= LIMITS.arguments_max.max(LIMITS.inline_bytes_max));
        assert!(frame.iter().all(|argument| argument.len() <= LIMITS.bulk_bytes_max));
    }
    let mut position = 0;
    while let Ok(Some((_, consumed))) = Value::decode(&bytes[position..]) {
        assert!(consumed > 0);
        position += consumed;
    }
}

/// Reads `bytes` as a dump of a value and of libraries, and as a dump that lacks its footers.
///
/// # Panics
/// When strings are longer than allowed, or the value written again is read differently. Never otherwise.
pub fn dump(bytes: &[u8]) {
    let limits = Limits { bulk_bytes_max: 4096, ..Limits::default() };
    for payload in [bytes.to_vec(), dump::finish(bytes.to_vec())] {
        if let Ok(sources) = dump::decode_libraries(&payload, limits) {
            assert!(sources.iter().map(Vec::len).sum::<usize>() <= limits.bulk_bytes_max);
            let again = dump::encode_libraries(sources.iter().map(Vec::as_slice));
            assert_eq!(dump::decode_libraries(&again, limits), Ok(sources));
        }
        let Ok(dumped) = dump::decode(&payload, limits) else { continue };
        let again = match &dumped {
            Dumped::String(value) => dump::encode_string(value),
            Dumped::Hash(fields) => {
                dump::encode_hash(fields.iter().map(|(field, value)| (&field[..], &value[..])))
            }
            Dumped::Set(members) => dump::encode_set(members.iter().map(|member| &member[..])),
        };
        if let Dumped::String(value) = &dumped {
            assert!(value.len() <= limits.bulk_bytes_max);
        }
        let limits = Limits { bulk_bytes_max: usize::MAX, ..limits };
        assert_eq!(dump::decode(&again, limits), Ok(dumped));
    }
}

/// Contents of dumps, without footers, for [`dump()`].
pub fn dump_samples() -> Vec<Vec<u8>> {
    vec![
        b"\x00\xc3\x09\x40\x64\x01\x61\x61\xe0\x57\x00\x01\x61\x61".to_vec(),
        b"\x02\x03\x01a\x02bc\xc0\x0c".to_vec(),
        b"\x04\x02\x01a\xc0\x01\x01b\x04text".to_vec(),
        b"\x0b\x0e\x02\0\0\0\x03\0\0\0\xfd\xff\x01\0\x02\0".to_vec(),
        b"\x0d\x0f\x0f\0\0\0\x0c\0\0\0\x02\0\0\xf3\x02\xf6\xff".to_vec(),
        b"\xf5\x0d#!lua name=a\n\xf5\xc3\x09\x40\x64\x01\x61\x61\xe0\x57\x00\x01\x61\x61".to_vec(),
        b"\x10\x10\x10\0\0\0\x04\0\x81a\x02\x01\x01\x02\x01\x03\x01\xff".to_vec(),
    ]
}

/// All frames of `bytes` when they come `step` at a time, as a connection would keep them.
pub(crate) fn frames_in_pieces(bytes: &[u8], step: usize) -> Frames {
    let mut parser = Parser::new(LIMITS);
    let mut frames = Vec::new();
    let mut buffer: Vec<u8> = Vec::new();
    for piece in bytes.chunks(step) {
        buffer.extend_from_slice(piece);
        loop {
            match parser.parse(&buffer) {
                Err(error) => return (frames, Some(error)),
                Ok(Progress::Incomplete { missing_bytes_min }) => {
                    assert!(missing_bytes_min > 0);
                    break;
                }
                Ok(Progress::Complete { consumed }) => {
                    assert!(consumed <= LIMITS.frame_bytes_max);
                    frames.push(parser.arguments(&buffer).iter().map(<[u8]>::to_vec).collect());
                    buffer.drain(..consumed);
                }
            }
        }
    }
    (frames, None)
}
