//! Keys, and values like those of services, by item number: what compression finds in them depends on their kind.

use std::io::Write as _;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::BenchError;
use crate::random::mix;

/// A kind of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Documents {
    /// JSON of some 120 bytes: a place with name, city, coordinates and tags
    Places,
    /// JSON of some 180 bytes: a session with identifiers and times
    Session,
    /// 48 bytes: six numbers, most of them small
    Metrics,
    /// 100 bytes that do not compress
    Random,
    /// The lines of a file, in turn
    File(PathBuf),
}

impl FromStr for Documents {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "places" => Self::Places,
            "session" => Self::Session,
            "metrics" => Self::Metrics,
            "random" => Self::Random,
            file => Self::File(PathBuf::from(file)),
        })
    }
}

const CITIES: [&str; 8] =
    ["Amsterdam", "Berlin", "Copenhagen", "Dublin", "Edinburgh", "Florence", "Geneva", "Hamburg"];
const KINDS: [&str; 6] = ["cafe", "hotel", "museum", "pharmacy", "restaurant", "station"];
const AGENTS: [&str; 4] = ["Firefox/128.0", "Chrome/126.0", "Safari/17.5", "curl/8.8.0"];

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;

/// The key of the item of this number: text that ends in its digits.
pub fn key(number: u64) -> [u8; KEY_BYTES] {
    let mut key = *b"key-000000000000";
    let mut rest = number;
    for digit in key.iter_mut().rev().take(12) {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// Makes the values of one kind.
#[derive(Debug)]
pub struct Maker {
    documents: Documents,
    lines: Vec<Vec<u8>>,
}

impl Maker {
    /// The maker of this kind of values.
    ///
    /// # Errors
    /// [`BenchError::Usage`] if it is a file that cannot be read, or is empty.
    pub fn new(documents: Documents) -> Result<Self, BenchError> {
        let mut lines = Vec::new();
        if let Documents::File(path) = &documents {
            let bytes = std::fs::read(path)
                .map_err(|error| BenchError::Usage(format!("{}: {error}", path.display())))?;
            lines = bytes
                .split(|&byte| byte == b'\n')
                .filter(|line| !line.is_empty())
                .map(<[u8]>::to_vec)
                .collect();
            if lines.is_empty() {
                return Err(BenchError::Usage(format!("{}: no lines", path.display())));
            }
        }
        Ok(Self { documents, lines })
    }

    /// Replaces the contents of `out` by the value of item `number`.
    pub fn make(&self, number: u64, out: &mut Vec<u8>) {
        out.clear();
        let mixed = mix(number + 1);
        let pick = |from: &[&'static str], salt: u32| from[(mixed >> salt) as usize % from.len()];
        // Writes to a vector do not fail.
        let _ = match &self.documents {
            Documents::Places => {
                let (latitude, longitude) = (mixed % 180_000, mixed / 7 % 360_000);
                let (city, kind) = (pick(&CITIES, 8), pick(&KINDS, 16));
                write!(out, r#"{{"id":{number},"name":"{kind} {:x}","city":"{city}","#, mixed >> 44).and_then(
                    |()| {
                        let (latitude, longitude) =
                            (latitude as f64 / 1000.0 - 90.0, longitude as f64 / 1000.0 - 180.0);
                        let is_open = mixed & 1 == 0;
                        write!(
                            out,
                            r#""lat":{latitude},"lon":{longitude},"kind":"{kind}","open":{is_open}}}"#
                        )
                    },
                )
            }
            Documents::Session => {
                let (agent, city) = (pick(&AGENTS, 8), pick(&CITIES, 16));
                let (created_at, seen_at) =
                    (1_760_000_000 + mixed % 1_000_000, 1_761_000_000 + mixed / 3 % 1_000_000);
                let user = number % 100_000;
                write!(out, r#"{{"user_id":{user},"session":"{mixed:016x}","created_at":{created_at},"#)
                    .and_then(|()| {
                        let cart = [mixed % 5000, mixed / 5 % 5000];
                        write!(
                            out,
                            r#""last_seen_at":{seen_at},"agent":"{agent}","city":"{city}","cart":{cart:?}}}"#
                        )
                    })
            }
            Documents::Metrics => {
                let small = [
                    number,
                    mixed % 100,
                    mixed / 7 % 1000,
                    1_760_000_000 + mixed % 86_400,
                    mixed & 3,
                    mixed >> 20,
                ];
                small.into_iter().try_for_each(|number| out.write_all(&number.to_le_bytes()))
            }
            Documents::Random => {
                (0..13_u64)
                    .for_each(|word| out.extend_from_slice(&mix(mixed ^ (word << 57 | 1)).to_le_bytes()));
                out.truncate(100);
                Ok(())
            }
            Documents::File(_) => out.write_all(&self.lines[number as usize % self.lines.len()]),
        };
    }

    /// Bytes of a value, on average.
    pub fn bytes_mean(&self) -> usize {
        const SAMPLES: u64 = 1000;
        let mut value = Vec::new();
        let sum: usize = (0..SAMPLES)
            .map(|number| {
                self.make(number * 7919, &mut value);
                value.len()
            })
            .sum();
        sum / SAMPLES as usize
    }
}
