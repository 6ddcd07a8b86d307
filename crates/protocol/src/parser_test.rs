//! The parser against a reference that is slow and obviously right, and against every way to cut the bytes.

use proptest::prelude::*;

use crate::fuzz::{self, frames_in_pieces};
use crate::{Limits, Parser, Progress, ProtocolError, parse, request};

/// Arguments of a frame and the bytes that follow it.
type Framed<'a> = (Vec<Vec<u8>>, &'a [u8]);

/// Parses the array frame at the front line by line, with the standard library's numbers. Returns `None` if more bytes
/// could complete it.
fn reference<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Option<Framed<'a>>, ProtocolError> {
    use ProtocolError::{
        ExpectedBulk, ExpectedLineEnd, FrameTooLong, InvalidBulkLength, InvalidMultibulkLength,
    };
    assert_eq!(bytes[0], b'*');
    let Some((count, mut rest)) = reference_number(&bytes[1..], InvalidMultibulkLength)? else {
        return Ok(None);
    };
    if count > limits.arguments_max as i64 {
        return Err(InvalidMultibulkLength);
    }
    let mut arguments = Vec::new();
    while (arguments.len() as i64) < count {
        match rest.first() {
            None => return Ok(None),
            Some(b'$') => {}
            Some(other) => return Err(ExpectedBulk(*other)),
        }
        let Some((length, data)) = reference_number(&rest[1..], InvalidBulkLength)? else { return Ok(None) };
        if length < 0 || length > limits.bulk_bytes_max as i64 {
            return Err(InvalidBulkLength);
        }
        let length = length as usize;
        if bytes.len() - data.len() + length + 2 > limits.frame_bytes_max {
            return Err(FrameTooLong);
        }
        if !b"\r\n".starts_with(&data[length.min(data.len())..(length + 2).min(data.len())]) {
            return Err(ExpectedLineEnd);
        }
        if data.len() < length + 2 {
            return Ok(None);
        }
        arguments.push(data[..length].to_vec());
        rest = &data[length + 2..];
    }
    Ok(Some((arguments, rest)))
}

fn reference_number(bytes: &[u8], invalid: ProtocolError) -> Result<Option<(i64, &[u8])>, ProtocolError> {
    let canonical = |text: &[u8]| {
        let text = std::str::from_utf8(text).ok()?;
        text.parse::<i64>().ok().filter(|number| number.to_string() == text)
    };
    let end = bytes.iter().position(|byte| *byte == b'\r').unwrap_or(bytes.len());
    let (text, line_end) = (&bytes[..end], &bytes[end..]);
    match (canonical(text), line_end) {
        (Some(number), [b'\r', b'\n', rest @ ..]) => Ok(Some((number, rest))),
        (Some(_), [] | [b'\r']) => Ok(None),
        (None, []) if text.is_empty() || text == b"-" => Ok(None),
        _ => Err(invalid),
    }
}

fn small() -> Limits {
    Limits { bulk_bytes_max: 40, arguments_max: 6, inline_bytes_max: 30, frame_bytes_max: 120 }
}

/// Valid requests, nearly valid ones and noise.
fn requests() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 1..5).prop_map(|arguments| {
            let mut bytes = Vec::new();
            request::encode(&arguments, &mut bytes);
            bytes
        }),
        1 => "[*$]?-?[0-9]{0,3}\r?\n?".prop_map(String::into_bytes),
        1 => "[a-c\"' \\\\x0-9]{0,40}\r?\n".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    (prop::collection::vec(piece, 0..6), any::<Option<(u16, u8)>>()).prop_map(|(pieces, change)| {
        let mut bytes = pieces.concat();
        if let Some((position, byte)) = change
            && !bytes.is_empty()
        {
            let position = usize::from(position) % bytes.len();
            bytes[position] = byte;
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_encoded_is_parsed(arguments in prop::collection::vec(any::<Vec<u8>>(), 1..20)) {
        let mut bytes = Vec::new();
        request::encode(&arguments, &mut bytes);
        let consumed = bytes.len();
        bytes.extend_from_slice(b"*1");
        prop_assert_eq!(parse(&bytes, Limits::default()), Ok(Some((arguments, consumed))));
        for cut in 0..consumed {
            prop_assert_eq!(parse(&bytes[..cut], Limits::default()), Ok(None));
        }
    }

    #[test]
    fn agrees_with_the_reference(requests in requests()) {
        let bytes = [b"*", requests.strip_prefix(b"*").unwrap_or(&requests)].concat();
        let expected = reference(&bytes, &small());
        let found = parse(&bytes, small());
        let expected = expected.map(|frame| frame.map(|(arguments, rest)| (arguments, bytes.len() - rest.len())));
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn every_cut_gives_the_same_frames(requests in requests()) {
        let whole = frames_in_pieces(&requests, requests.len().max(1));
        for step in 1..requests.len() {
            prop_assert_eq!(&frames_in_pieces(&requests, step), &whole);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>, requests in requests()) {
        fuzz::resp(&bytes);
        fuzz::resp(&requests);
    }

    #[test]
    fn missing_bytes_are_never_overstated(requests in requests()) {
        let mut parser = Parser::new(Limits::default());
        if let Ok(Progress::Complete { consumed }) = parser.parse(&requests) {
            for cut in 0..consumed {
                let mut parser = Parser::new(Limits::default());
                let Ok(Progress::Incomplete { missing_bytes_min }) = parser.parse(&requests[..cut]) else {
                    return Err(TestCaseError::fail("a cut frame was not incomplete"));
                };
                prop_assert!(cut + missing_bytes_min <= consumed);
            }
        }
    }
}

#[test]
fn errors_have_the_texts_of_redis() {
    let cases: [(&[u8], &str); 12] = [
        (b"*x\r\n", "Protocol error: invalid multibulk length"),
        (b"*3000000000\r\n", "Protocol error: invalid multibulk length"),
        (b"*1\r\n$x\r\n", "Protocol error: invalid bulk length"),
        (b"*1\r\n$-1\r\n", "Protocol error: invalid bulk length"),
        (b"*1\r\n$2000000000\r\n", "Protocol error: invalid bulk length"),
        (b"*1\r\n$01\r\n", "Protocol error: invalid bulk length"),
        (b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n", "Protocol error: expected '$', got 'f'"),
        (b"*1\r\n\x00", "Protocol error: expected '$', got '\\x00'"),
        (b"*1\r\n$1\r\nxyz", "Protocol error: expected CRLF after bulk data"),
        (b"set \"a\r\n", "Protocol error: unbalanced quotes in request"),
        (b"\x00", "Protocol error: NUL byte in inline request"),
        (&[b'x'; 70_000], "Protocol error: too big inline request"),
    ];
    for (bytes, text) in cases {
        assert_eq!(
            parse(bytes, Limits::default()).unwrap_err().to_string(),
            text,
            "{}",
            bytes.escape_ascii()
        );
    }
    let limits = Limits { frame_bytes_max: 20, ..Limits::default() };
    assert_eq!(parse(b"*2\r\n$1\r\na\r\n$9\r\n", limits), Err(ProtocolError::FrameTooLong));
}

#[test]
fn empty_frames_have_no_arguments() {
    for bytes in [&b"*0\r\n"[..], b"*-1\r\n", b"\r\n", b"\n", b"   \r\n"] {
        assert_eq!(parse(bytes, Limits::default()), Ok(Some((Vec::new(), bytes.len()))));
    }
}

#[test]
fn announced_bytes_reserve_nothing() {
    let mut parser = Parser::new(Limits::default());
    assert!(matches!(parser.parse(b"*1000000\r\n$60000000\r\n"), Ok(Progress::Incomplete { .. })));
    assert!(parser.heap_bytes() < 1024);
}

#[test]
fn a_large_frame_gives_its_memory_back() {
    let mut parser = Parser::new(Limits::default());
    let mut bytes = Vec::new();
    request::encode(&vec![b"x"; 100_000], &mut bytes);
    assert_eq!(parser.parse(&bytes), Ok(Progress::Complete { consumed: bytes.len() }));
    parser.shrink();
    assert!(parser.heap_bytes() < 1024);
    assert_eq!(parser.parse(b"PING\n"), Ok(Progress::Complete { consumed: 5 }));
}
