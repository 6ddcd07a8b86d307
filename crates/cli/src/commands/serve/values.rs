//! Values of settings, as people write them.

use std::str::FromStr;
use std::time::Duration;

use alluvium::Durability;
use alluvium_base::units;
#[cfg(target_os = "linux")]
use alluvium_server::Survive;
use alluvium_server::{Codec, UdpMode};
use serde::{Deserialize, Deserializer, de};

/// Bytes, such as `64MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

/// A duration, such as `10s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub Duration);

/// Permissions of a file, in octal, such as `770`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(pub u32);

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged(pub Durability);

/// Which workers execute a request that comes in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessMode(pub UdpMode);

/// Who sends requests in datagrams to the worker that executes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Director {
    Client,
    Software,
}

/// How datagrams come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Net {
    Auto,
    Sockets,
    /// Also in frames of the interface of this name.
    Xdp(String),
}

/// How the evicted items of a cache are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression(pub Codec);

/// What the content of a cache in a file survives.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss(pub Survive);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        units::parse_bytes(text).map(Self)
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match units::parse_duration(text)? {
            Duration::ZERO => Err("expected a time longer than 0".to_owned()),
            time => Ok(Self(time)),
        }
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match u32::from_str_radix(text, 8) {
            Ok(mode) if mode <= 0o777 => Ok(Self(mode)),
            _ => Err("expected permissions in octal, such as 770".to_owned()),
        }
    }
}

impl FromStr for Acknowledged {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(match text {
            "buffered" => Durability::Buffered,
            "process" => Durability::Process,
            "sync" => Durability::Sync,
            text => match text.parse() {
                Ok(Time(interval)) => Durability::Interval(interval),
                Err(_) => {
                    return Err("expected buffered, process, sync, or an interval such as 10ms".to_owned());
                }
            },
        }))
    }
}

impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "lz4" => Ok(Self(Codec::Lz4)),
            #[cfg(feature = "zstd")]
            "zstd" => Ok(Self(Codec::Zstd)),
            "none" => Ok(Self(Codec::None)),
            _ => Err("expected lz4, zstd, or none for blocks that are not compressed".to_owned()),
        }
    }
}

impl FromStr for AccessMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "crcw" => Ok(Self(UdpMode::Shared)),
            "crew" => Ok(Self(UdpMode::ConcurrentReads)),
            "erew" => Ok(Self(UdpMode::Exclusive)),
            _ => Err("expected crcw, crew or erew".to_owned()),
        }
    }
}

impl FromStr for Director {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "client" => Ok(Self::Client),
            "software" => Ok(Self::Software),
            _ => Err("expected client or software".to_owned()),
        }
    }
}

impl FromStr for Net {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("xdp:")) {
            ("auto", _) => Ok(Self::Auto),
            ("sockets", _) => Ok(Self::Sockets),
            (_, Some(interface)) if !interface.is_empty() => Ok(Self::Xdp(interface.to_owned())),
            _ => Err("expected auto, sockets, or xdp: and the name of a network interface".to_owned()),
        }
    }
}

#[cfg(target_os = "linux")]
impl FromStr for Loss {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "process" => Ok(Self(Survive::Process)),
            "pmem" => Ok(Self(Survive::Pmem)),
            "power" => Ok(Self(Survive::Power)),
            _ => Err("expected process, power, or pmem for a file in persistent memory".to_owned()),
        }
    }
}

impl Default for Acknowledged {
    fn default() -> Self {
        Self(Durability::Sync)
    }
}

/// Files have the same texts as the command line.
fn from_text<'de, D: Deserializer<'de>, T: FromStr<Err = String>>(deserializer: D) -> Result<T, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

#[cfg(target_os = "linux")]
impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

impl<'de> Deserialize<'de> for Compression {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

impl<'de> Deserialize<'de> for AccessMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

impl<'de> Deserialize<'de> for Director {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

impl<'de> Deserialize<'de> for Net {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

impl<'de> Deserialize<'de> for Acknowledged {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_come_in_three_ways() {
        assert_eq!("auto".parse(), Ok(Net::Auto));
        assert_eq!("sockets".parse(), Ok(Net::Sockets));
        assert_eq!("xdp:eth0".parse(), Ok(Net::Xdp("eth0".to_owned())));
        for text in ["", "xdp", "xdp:", "eth0", "AUTO"] {
            assert!(text.parse::<Net>().is_err(), "{text}");
        }
    }
}
