//! Asking a server for a document over HTTP.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::failure::Failure;

/// Maximum bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// How long to wait for the server, each time.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Name or address, and port.
    host: String,
    /// Path before that of a document; empty, or begins with `/`.
    path: String,
}

impl Url {
    /// Reads `http://HOST[:PORT][/PATH]`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix("http://") else {
            return Err("expected an address such as http://127.0.0.1:6380".to_owned());
        };
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if host.is_empty() || !is_plain(rest) {
            return Err("expected an address such as http://127.0.0.1:6380".to_owned());
        }
        let after_address = host.rsplit(']').next().unwrap_or_default();
        let host = if after_address.contains(':') { host.to_owned() } else { format!("{host}:80") };
        Ok(Self { host, path: path.trim_end_matches('/').to_owned() })
    }

    /// The body of the document at `path`, which begins with `/`.
    pub fn get(&self, path: &str) -> Result<String, Failure> {
        let failed = |reason: String| Failure::Failed(format!("cannot ask http://{}: {reason}", self.host));
        let answer = self.ask(path).map_err(|error| failed(error.to_string()))?;
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let Some((head, body)) = end.map(|end| (&answer[..end], &answer[end + 4..])) else {
            return Err(failed("the answer is not HTTP".to_owned()));
        };
        let status = String::from_utf8_lossy(head.split(|&byte| byte == b'\r').next().unwrap_or_default());
        if status.split(' ').nth(1) != Some("200") {
            return Err(failed(format!("the answer is {status:?}")));
        }
        String::from_utf8(body.to_vec()).map_err(|error| failed(error.to_string()))
    }

    fn ask(&self, path: &str) -> io::Result<Vec<u8>> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in self.host.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, TIMEOUT) {
                Ok(stream) => return self.ask_over(stream, path),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn ask_over(&self, mut stream: TcpStream, path: &str) -> io::Result<Vec<u8>> {
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let (host, prefix) = (&self.host, &self.path);
        write!(stream, "GET {prefix}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_understood() {
        let url = |host: &str, path: &str| Ok(Url { host: host.to_owned(), path: path.to_owned() });
        assert_eq!(Url::parse("http://127.0.0.1:6380"), url("127.0.0.1:6380", ""));
        assert_eq!(Url::parse("http://store/behind/"), url("store:80", "/behind"));
        assert_eq!(Url::parse("http://[::1]"), url("[::1]:80", ""));
        assert_eq!(Url::parse("http://[::1]:81/"), url("[::1]:81", ""));
        for text in
            ["127.0.0.1:6380", "https://store", "http://", "http:///x", "http://a b", "http://a/\r\nb"]
        {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }
}
