//! The parser: requests as clients write them, and every way to cut the bytes.

use proptest::prelude::*;

use super::*;
use crate::fuzz::{self, Event, events_in_pieces};

/// The request that `bytes` are, and nothing else.
fn parsed(bytes: &[u8]) -> Request<'_> {
    match Parser::new(Limits::default()).parse(bytes) {
        Progress::Complete { consumed, request } if consumed == bytes.len() => request,
        other => panic!("{}: {other:?}", bytes.escape_ascii()),
    }
}

fn key(text: &[u8]) -> Key<'_> {
    Key::from_text(text).expect("a key")
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![5 => 33u8..127, 1 => 128u8..], 1..40)
}

fn values() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![prop::collection::vec(any::<u8>(), 0..60), "[\r\n ]{0,6}".prop_map(String::into_bytes)]
}

/// Flags that may stand together in one request, in any order.
fn flags() -> impl Strategy<Value = Vec<String>> {
    let number = any::<u64>();
    let flags = vec![
        "[kqtvfchluIsx]".boxed(),
        "O[!-~]{0,31}".boxed(),
        "[PL][!-~]{0,9}".boxed(),
        (any::<i64>(), prop::sample::select(vec!['T', 'N', 'R']))
            .prop_map(|(n, flag)| format!("{flag}{n}"))
            .boxed(),
        (number, prop::sample::select(vec!['C', 'E', 'J', 'D']))
            .prop_map(|(n, flag)| format!("{flag}{n}"))
            .boxed(),
        any::<u32>().prop_map(|number| format!("F{number}")).boxed(),
    ];
    prop::collection::vec(prop::strategy::Union::new(flags), 0..10).prop_map(|mut flags| {
        let mut seen = Vec::new();
        flags.retain(|flag| {
            let is_new = !seen.contains(&flag.as_bytes()[0]);
            seen.push(flag.as_bytes()[0]);
            is_new
        });
        flags
    })
}

/// Valid requests, nearly valid ones and noise.
fn requests() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        "get",
        "gats",
        "set",
        "cas",
        "delete",
        "incr",
        "touch",
        "flush_all",
        "stats",
        "mg",
        "ms",
        "md",
        "ma",
        "me",
        "mn",
        "a",
        "key",
        "0",
        "1",
        "5",
        "-1",
        "30",
        "noreply",
        "v",
        "k",
        "b",
        "q",
        "T30",
        "Oabc",
        "MA",
        "Zm9v",
        "items",
        "x",
    ]);
    let line = (prop::collection::vec(word, 0..9), prop::sample::select(vec!["\r\n", "\n", "\r", " \r\n"]))
        .prop_map(|(words, end)| (words.join(" ") + end).into_bytes());
    let piece = prop_oneof![
        4 => line,
        4 => (keys(), values(), any::<bool>(), 0..3usize).prop_map(|(key, value, is_meta, excess)| {
            let length = value.len() + excess / 2;
            let mut bytes = if is_meta { b"ms ".to_vec() } else { b"set ".to_vec() };
            bytes.extend(key);
            bytes.extend(if is_meta { format!(" {length} k\r\n") } else { format!(" 0 0 {length}\r\n") }.into_bytes());
            bytes.extend(value);
            bytes.extend(b"\r\n");
            bytes
        }),
        1 => (0..120usize).prop_map(|spaces| [&b" ".repeat(spaces)[..], b"get a\r\n"].concat()),
        1 => (0..90usize).prop_map(|keys| [b"get", &b" k".repeat(keys)[..], b"\r\n"].concat()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn storage_lines_say_what_is_stored(
        key_text in keys(), value in values(), client_flags: u32, exptime: i64, compare: Option<u64>, noreply: bool,
        command in 0..5usize
    ) {
        let (name, mode) = match compare {
            Some(_) => ("cas", StoreMode::Set),
            None => [
                ("set", StoreMode::Set),
                ("add", StoreMode::Add),
                ("replace", StoreMode::Replace),
                ("append", StoreMode::Append),
                ("prepend", StoreMode::Prepend),
            ][command],
        };
        let mut bytes = [name.as_bytes(), b" ", &key_text].concat();
        bytes.extend(format!(" {client_flags} {exptime} {}", value.len()).into_bytes());
        bytes.extend(compare.map_or(String::new(), |cas| format!(" {cas}")).into_bytes());
        bytes.extend(if noreply { &b" noreply\r\n"[..] } else { b"\r\n" });
        bytes.extend(&value);
        bytes.extend(b"\r\n");
        let store = Store { key: key(&key_text), client_flags, exptime, mode, compare, value: &value };
        prop_assert_eq!(parsed(&bytes), Request::Store { store, noreply });
        let mut again = Vec::new();
        parsed(&bytes).encode(&mut again);
        prop_assert_eq!(again, bytes);
    }

    #[test]
    fn all_keys_are_got_in_order(
        texts in prop::collection::vec(keys(), 1..60), touch: Option<i64>, with_cas: bool
    ) {
        let mut bytes = format!("{}{}", if touch.is_some() { "gat" } else { "get" }, if with_cas { "s" } else { "" });
        bytes += &touch.map_or(String::new(), |exptime| format!(" {exptime}"));
        let mut bytes = bytes.into_bytes();
        for text in &texts {
            bytes.push(b' ');
            bytes.extend(text);
        }
        bytes.extend(b"\r\n");
        let Request::Get(get) = parsed(&bytes) else { return Err(TestCaseError::fail("no get")) };
        prop_assert_eq!((get.touch, get.with_cas, get.keys.len()), (touch, with_cas, texts.len()));
        prop_assert!(get.keys.iter().map(|key| key.text()).eq(texts.iter().map(Vec::as_slice)));
        let mut again = Vec::new();
        Request::Get(get).encode(&mut again);
        prop_assert_eq!(again, bytes);
    }

    #[test]
    fn requests_with_a_number_are_written_and_read(
        key_text in keys(), number: u64, exptime: i64, noreply: bool, level: u32, is_up: bool
    ) {
        let key = key(&key_text);
        let direction = if is_up { Direction::Increment } else { Direction::Decrement };
        for request in [
            Request::Delete { key, noreply },
            Request::Arithmetic { key, direction, delta: number, noreply },
            Request::Touch { key, exptime, noreply },
            Request::FlushAll { delay: exptime, noreply },
            Request::Verbosity { level, noreply },
            Request::Statistics(Statistics::CacheDump { slab: level % 64, items_max: level }),
            Request::MetaDebug { key },
        ] {
            let mut bytes = Vec::new();
            request.encode(&mut bytes);
            prop_assert_eq!(parsed(&bytes), request);
        }
    }

    #[test]
    fn flags_are_understood_and_kept_in_order(key_text in keys(), flags in flags(), value in values()) {
        let text: String = flags.iter().map(|flag| format!(" {flag}")).collect();
        let token = |letter: char| flags.iter().find_map(|flag| flag.strip_prefix(letter));
        let signed = |letter| token(letter).map(|token| token.parse::<i64>().unwrap());
        let unsigned = |letter| token(letter).map(|token| token.parse::<u64>().unwrap());
        let line = |command: &str, length: &str| {
            [command.as_bytes(), b" ", &key_text, length.as_bytes(), text.as_bytes(), b"\r\n"].concat()
        };
        let bytes = line("mg", "");
        let Request::MetaGet(get) = parsed(&bytes) else { return Err(TestCaseError::fail("no mg")) };
        let kept: Vec<Vec<u8>> = get.echo.flags().map(|(flag, token)| [&[flag], token].concat()).collect();
        prop_assert!(kept.iter().eq(flags.iter().map(|flag| flag.as_bytes())));
        prop_assert_eq!(get.key.text(), &key_text[..]);
        prop_assert_eq!((get.touch, get.recache, get.new_cas), (signed('T'), signed('R'), unsigned('E')));
        prop_assert_eq!(get.vivify.is_some(), token('N').is_some());
        prop_assert_eq!((get.with_value, get.no_bump), (token('v').is_some(), token('u').is_some()));
        prop_assert_eq!(get.echo.is_quiet(), token('q').is_some());

        let bytes = line("md", "");
        let Request::MetaDelete(delete) = parsed(&bytes) else { return Err(TestCaseError::fail("no md")) };
        prop_assert_eq!((delete.compare, delete.exptime), (unsigned('C'), signed('T')));
        prop_assert_eq!((delete.invalidate, delete.remove_value), (token('I').is_some(), token('x').is_some()));
        prop_assert_eq!(u64::from(delete.client_flags), unsigned('F').unwrap_or(0));

        let bytes = line("ma", "");
        let Request::MetaArithmetic(count) = parsed(&bytes) else { return Err(TestCaseError::fail("no ma")) };
        prop_assert_eq!((count.delta, count.initial), (unsigned('D').unwrap_or(1), unsigned('J').unwrap_or(0)));
        prop_assert_eq!(count.compare, unsigned('C').filter(|cas| *cas != 0));

        let mut bytes = line("ms", &format!(" {}", value.len()));
        bytes.extend(&value);
        bytes.extend(b"\r\n");
        let Request::MetaStore(set) = parsed(&bytes) else { return Err(TestCaseError::fail("no ms")) };
        prop_assert_eq!(set.store.value, &value[..]);
        prop_assert_eq!(set.store.exptime, signed('T').unwrap_or(0));
        prop_assert_eq!(set.store.compare, unsigned('C'));
        prop_assert_eq!(set.stale_if_newer, token('I').is_some() && token('C').is_some());
        let mut again = Vec::new();
        Request::MetaStore(set).encode(&mut again);
        prop_assert_eq!(again, bytes);
    }

    #[test]
    fn every_cut_gives_the_same_requests(requests in requests()) {
        let whole = events_in_pieces(&requests, requests.len().max(1));
        for step in 1..requests.len().min(40) {
            prop_assert_eq!(&events_in_pieces(&requests, step), &whole);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>, requests in requests()) {
        fuzz::memcached(&bytes);
        fuzz::memcached(&requests);
    }

    #[test]
    fn missing_bytes_are_never_overstated(requests in requests()) {
        if let Progress::Complete { consumed, .. } = Parser::new(Limits::default()).parse(&requests) {
            for cut in 0..consumed {
                let progress = Parser::new(Limits::default()).parse(&requests[..cut]);
                let Progress::Incomplete { missing_bytes_min } = progress else {
                    return Err(TestCaseError::fail("a cut request was not incomplete"));
                };
                prop_assert!(cut + missing_bytes_min <= consumed);
            }
        }
    }
}

#[test]
fn modes_are_normalized() {
    for (flags, mode, compare) in [
        ("", StoreMode::Set, None),
        (" MS C5", StoreMode::Set, Some(5)),
        (" MR", StoreMode::Replace, None),
        (" MR C5", StoreMode::Set, Some(5)),
        (" MS C0", StoreMode::Set, Some(0)),
        (" ME C5", StoreMode::Add, None),
        (" MA C5", StoreMode::Append, Some(5)),
        (" MP C0", StoreMode::Prepend, None),
    ] {
        let bytes = format!("ms key 1{flags} I N9\r\nx\r\n").into_bytes();
        let Request::MetaStore(set) = parsed(&bytes) else { panic!("no ms") };
        assert_eq!((set.store.mode, set.store.compare), (mode, compare), "{flags:?}");
        assert_eq!(set.stale_if_newer, mode == StoreMode::Set && compare.is_some(), "{flags:?}");
        let is_addition = matches!(mode, StoreMode::Append | StoreMode::Prepend);
        assert_eq!(set.vivify, is_addition.then_some(9), "{flags:?}");
    }
    for (flags, vivify) in [(" N5", Some(5)), (" N5 T6", Some(6)), (" T6 N5", Some(5)), (" T6", None)] {
        let bytes = format!("mg key{flags}\r\n").into_bytes();
        let Request::MetaGet(get) = parsed(&bytes) else { panic!("no mg") };
        assert_eq!(get.vivify, vivify, "{flags:?}");
    }
}

#[test]
fn binary_keys_are_decoded_on_demand() {
    let Request::MetaGet(get) = parsed(b"mg Zm9vAA== v b\r\n") else { panic!("no mg") };
    assert_eq!(get.key.bytes(&mut KeyBuffer::default()), b"foo\0");
    assert_eq!(get.key.text(), b"Zm9vAA==");
    let longest = [b"mg ", &b"A".repeat(248)[..], b" b\r\n"].concat();
    let Request::MetaGet(get) = parsed(&longest) else { panic!("no mg") };
    assert_eq!(get.key.bytes(&mut KeyBuffer::default()), [0; 186]);
}

#[test]
fn a_value_that_is_too_large_is_skipped_as_it_comes() {
    let limits = Limits { value_bytes_max: 10, ..Limits::default() };
    for (line, is_silent, discards) in [
        ("set key 0 0 1000000\r\n", false, true),
        ("set key 0 0 1000000 noreply\r\n", true, true),
        ("add key 0 0 1000000\r\n", false, false),
        ("cas key 0 0 1000000 7\r\n", false, false),
        ("ms key 1000000 q MA\r\n", false, true),
    ] {
        let mut parser = Parser::new(limits);
        let Progress::Refused { consumed, refusal } = parser.parse(line.as_bytes()) else { panic!("{line}") };
        assert_eq!((consumed, refusal.error), (line.len(), Error::TooLarge), "{line}");
        assert_eq!(
            (refusal.is_silent, refusal.discard),
            (is_silent, discards.then_some(key(b"key"))),
            "{line}"
        );
        assert_eq!(parser.parse(b""), Progress::Incomplete { missing_bytes_min: 1 });
        for _ in 0..1000 {
            assert_eq!(parser.parse(&b"flush_all\n".repeat(100)), Progress::Skipped { consumed: 1000 });
        }
        assert_eq!(parser.parse(b"\r\nmn\r\n"), Progress::Skipped { consumed: 2 });
        assert!(matches!(
            parser.parse(b"mn\r\n"),
            Progress::Complete { request: Request::MetaNoOperation, .. }
        ));
    }
    assert!(matches!(
        Parser::new(limits).parse(b"set k 0 0 10\r\n0123456789\r\n"),
        Progress::Complete { .. }
    ));
}

#[test]
fn lines_are_bounded() {
    let too_long = |bytes: &[u8]| {
        let progress = Parser::new(Limits::default()).parse(bytes);
        matches!(progress, Progress::Refused { refusal, .. } if refusal.error == Error::LineTooLong)
    };
    assert!(!too_long(&[b'x'; 2048]));
    assert!(too_long(&[b'x'; 2049]));
    for (command, is_list) in
        [("get", true), ("gets", true), ("gat", true), ("gats", true), ("set", false), ("mg", false)]
    {
        let mut line = format!("{command} {}", "12345678 ".repeat(300)).into_bytes();
        assert_eq!(too_long(&line), !is_list, "{command}");
        line.push(b'\n');
        assert_eq!(too_long(&line), !is_list, "{command}");
        line.insert(0, b' ');
        assert_eq!(too_long(&line), !is_list, "{command}");
        line.splice(0..0, [b' '; 100]);
        assert!(too_long(&line), "{command}");
    }
    let longest = [b"get ", &b"12345678 ".repeat(200_000)[..]].concat();
    assert!(!too_long(&longest[..1 << 20]));
    assert!(too_long(&longest[..(1 << 20) + 1]));
    assert_eq!(Parser::new(Limits::default()).request_bytes_max(), (1 << 20) + 2048 + 3);
}

#[test]
fn a_refusal_keeps_the_framing() {
    let events = events_in_pieces(
        b"foo\r\nset a 0 0 2\r\nxyz\r\nms a 3 z\r\nxyz\r\nset \x01 0 0 4\r\nquit\r\nmn\r\n",
        3,
    );
    assert_eq!(
        events,
        [
            Event::Refusal(Error::Unknown, false, None),
            Event::Refusal(Error::BadDataChunk, false, None),
            // As in memcached, the value counts by the length given, and what follows is a request.
            Event::Refusal(Error::Unknown, false, None),
            Event::Refusal(Error::InvalidFlag, false, None),
            Event::Refusal(Error::BadFormat, false, None),
            Event::Request(b"mn\r\n".to_vec()),
        ]
    );
}
