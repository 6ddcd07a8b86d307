//! A blocking HTTP client, and the scraped text as series.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

pub struct Http(BufReader<TcpStream>);

pub struct Answer {
    pub status: u16,
    headers: BTreeMap<String, String>,
    pub body: String,
}

impl Answer {
    /// The value of the header with this name in lower case.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

impl Http {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self(BufReader::new(stream))
    }

    pub fn ask(address: SocketAddr, path: &str) -> Answer {
        let mut http = Self::connect(address);
        http.send(&format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"));
        http.answer()
    }

    pub fn send(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    pub fn answer(&mut self) -> Answer {
        let mut line = || {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        };
        let status = line();
        let status = status.split(' ').nth(1).unwrap_or_else(|| panic!("{status:?}")).parse().unwrap();
        let mut headers = BTreeMap::new();
        while let Some((name, value)) = line().split_once(": ") {
            headers.insert(name.to_lowercase(), value.to_owned());
        }
        let mut body = vec![0; headers["content-length"].parse().unwrap()];
        self.0.read_exact(&mut body).unwrap();
        Answer { status, headers, body: String::from_utf8(body).unwrap() }
    }

    /// Sends no more.
    pub fn end(&mut self) {
        self.0.get_ref().shutdown(Shutdown::Write).unwrap();
    }

    pub fn is_closed(&mut self) -> bool {
        self.closes_within(Duration::from_secs(30))
    }

    pub fn closes_within(&mut self, time: Duration) -> bool {
        self.0.get_ref().set_read_timeout(Some(time)).unwrap();
        match self.0.read(&mut [0]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

/// What `/metrics` says.
pub struct Scrape(BTreeMap<String, f64>);

impl Scrape {
    pub fn of(address: SocketAddr) -> Self {
        let answer = Http::ask(address, "/metrics");
        assert_eq!(answer.status, 200);
        assert!(answer.header("content-type").starts_with("application/openmetrics-text; version=1.0.0"));
        let series = answer.body.lines().filter(|line| !line.starts_with('#'));
        Self(
            series
                .map(|line| line.rsplit_once(' ').unwrap())
                .map(|(n, v)| (n.into(), v.parse().unwrap()))
                .collect(),
        )
    }

    pub fn value(&self, series: &str) -> f64 {
        *self.0.get(series).unwrap_or_else(|| panic!("no {series}"))
    }

    /// The names of all series, without labels.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|series| series.split('{').next().unwrap())
    }
}
