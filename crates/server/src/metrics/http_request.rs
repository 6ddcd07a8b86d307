//! [`Parsed`]: the head of an HTTP request.

/// Maximum bytes of a request's head.
pub(super) const HEAD_BYTES_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 64;

/// What the bytes received so far are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed<'a> {
    /// More bytes are needed.
    Incomplete,
    /// A request for this path, without its query.
    Get {
        path: &'a str,
        /// Whether the client wants to send another request.
        stays: bool,
        /// Bytes of the request.
        consumed: usize,
    },
    /// A request that is answered by this status, after which the connection ends.
    Refused(Status),
}

/// Statuses of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    BadRequest,
    NotFound,
    MethodNotAllowed,
    HeadTooLarge,
    Unavailable,
}

impl Status {
    /// The code with its reason phrase.
    pub fn line(self) -> &'static str {
        match self {
            Self::Ok => "200 OK",
            Self::BadRequest => "400 Bad Request",
            Self::NotFound => "404 Not Found",
            Self::MethodNotAllowed => "405 Method Not Allowed",
            Self::HeadTooLarge => "431 Request Header Fields Too Large",
            Self::Unavailable => "503 Service Unavailable",
        }
    }
}

/// Parses the beginning of `bytes`.
pub(super) fn parse(bytes: &[u8]) -> Parsed<'_> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let consumed = match request.parse(&bytes[..bytes.len().min(HEAD_BYTES_MAX)]) {
        Ok(httparse::Status::Complete(consumed)) => consumed,
        Ok(httparse::Status::Partial) if bytes.len() >= HEAD_BYTES_MAX => {
            return Parsed::Refused(Status::HeadTooLarge);
        }
        Ok(httparse::Status::Partial) => return Parsed::Incomplete,
        Err(httparse::Error::TooManyHeaders) => return Parsed::Refused(Status::HeadTooLarge),
        Err(_) => return Parsed::Refused(Status::BadRequest),
    };
    if request.method != Some("GET") {
        return Parsed::Refused(Status::MethodNotAllowed);
    }
    // HTTP/1.1 stays unless told otherwise, 1.0 the other way round.
    let mut stays = request.version == Some(1);
    for header in request.headers.iter() {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        // A body would be taken for the next request.
        if is("transfer-encoding") || (is("content-length") && header.value != b"0") {
            return Parsed::Refused(Status::BadRequest);
        }
        if is("connection") {
            for option in header.value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                match option {
                    option if option.eq_ignore_ascii_case(b"close") => stays = false,
                    option if option.eq_ignore_ascii_case(b"keep-alive") => stays = true,
                    _ => {}
                }
            }
        }
    }
    let path = request.path.and_then(|path| path.split('?').next()).unwrap_or_default();
    Parsed::Get { path, stays, consumed }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn heads_are_understood() {
        let cases: [(&str, Parsed<'_>); 9] = [
            ("", Parsed::Incomplete),
            ("GET / HTTP/1.1\r\nHost: x\r\n", Parsed::Incomplete),
            (
                "GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\nGET",
                Parsed::Get { path: "/a", stays: true, consumed: 32 },
            ),
            (
                "GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\n",
                Parsed::Get { path: "/", stays: false, consumed: 40 },
            ),
            (
                "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
                Parsed::Get { path: "/", stays: true, consumed: 42 },
            ),
            ("GET / HTTP/1.0\n\n", Parsed::Get { path: "/", stays: false, consumed: 16 }),
            ("POST / HTTP/1.1\r\n\r\n", Parsed::Refused(Status::MethodNotAllowed)),
            ("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n", Parsed::Refused(Status::BadRequest)),
            ("*1\r\n$4\r\nPING\r\n", Parsed::Refused(Status::BadRequest)),
        ];
        for (text, parsed) in cases {
            assert_eq!(parse(text.as_bytes()), parsed, "{text:?}");
        }
        let long = format!("GET / HTTP/1.1\r\nA: {}", "b".repeat(HEAD_BYTES_MAX));
        assert_eq!(parse(long.as_bytes()), Parsed::Refused(Status::HeadTooLarge));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(HEADERS_MAX + 1));
        assert_eq!(parse(many.as_bytes()), Parsed::Refused(Status::HeadTooLarge));
    }

    proptest! {
        #[test]
        fn no_byte_is_read_twice(
            head in "(GET|POST|G) /[a-z?=/]{0,8} HTTP/1.[0-2]\r\n(([A-Za-z-]{1,18}: [a-z0-9, ]{0,12}\r\n){0,4})(\r\n)?",
            changed in proptest::option::of((any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let mut bytes = head.into_bytes();
            if let Some((at, byte)) = changed {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let whole = parse(&bytes);
            for len in 0..bytes.len() {
                match parse(&bytes[..len]) {
                    Parsed::Incomplete => {}
                    earlier => prop_assert_eq!(&earlier, &whole),
                }
            }
            if let Parsed::Get { consumed, .. } = whole {
                prop_assert!(consumed <= bytes.len());
            }
        }
    }
}
