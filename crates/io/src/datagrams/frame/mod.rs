//! [`Frame`]: a datagram as a network carries it, an Ethernet frame with headers of IP and UDP.
//!
//! Reads frames that a program in the kernel has chosen (`xdp`), and does not trust that: each length is checked, and
//! both checksums are. Frames of other kinds (fragments, options, extension headers, VLANs) are refused; the program
//! leaves them to the kernel.

mod checksum;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use checksum::{UDP, fold, pseudo_header, sum};

/// Bytes of the header of Ethernet.
pub(super) const ETHERNET_BYTES: usize = 14;
/// Bytes of the header of IPv4 without options.
pub(super) const IPV4_BYTES: usize = 20;
/// Bytes of the header of IPv6 without extensions.
pub(super) const IPV6_BYTES: usize = 40;
/// Bytes of the header of UDP.
pub(super) const UDP_BYTES: usize = 8;
/// The types of IPv4 and IPv6 in the header of Ethernet.
pub(super) const ETHERTYPES: (u16, u16) = (0x0800, 0x86dd);
/// How many links a packet of ours may pass.
const HOPS_MAX: u8 = 64;

/// The two ends of a frame in an Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Who sends it.
    pub from: [u8; 6],
    /// Who receives it.
    pub to: [u8; 6],
}

impl Link {
    /// The way back.
    pub fn reversed(self) -> Self {
        Self { from: self.to, to: self.from }
    }
}

/// A frame with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The ends in the Ethernet.
    pub link: Link,
    /// Who has sent the datagram.
    pub from: SocketAddr,
    /// Who receives it, of the same version of IP.
    pub to: SocketAddr,
    /// The datagram.
    pub content: &'a [u8],
}

/// Whether a frame may have a checksum that covers the addresses and the length only. A sender of this machine leaves
/// the rest to its device, which a virtual one does not do; and the kernel writes such checksums into datagrams that it
/// joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// It may: no frames are joined here.
    Accept,
    /// It may not.
    Refuse,
}

/// Why bytes are no frame with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoDatagram {
    /// Bytes are missing.
    Short,
    /// It is of another kind.
    Foreign,
    /// A checksum is wrong, or missing where it must not be.
    Checksum,
    /// Nobody can have such an address.
    Address,
}

impl<'a> Frame<'a> {
    /// Reads a frame. What follows the datagram is ignored: short frames are padded. Costs one pass over the bytes.
    ///
    /// # Errors
    /// Bytes that are no frame with a whole datagram of a single sender to a single receiver.
    pub fn parse(bytes: &'a [u8], unfinished: Unfinished) -> Result<Self, NoDatagram> {
        let (ethernet, packet) = bytes.split_first_chunk::<ETHERNET_BYTES>().ok_or(NoDatagram::Short)?;
        let link = Link { to: part(ethernet, 0), from: part(ethernet, 6) };
        // The first bit that is sent says whether it is for a group.
        if (link.to[0] | link.from[0]) & 1 != 0 {
            return Err(NoDatagram::Address);
        }
        let ethertype = u16::from_be_bytes(part(ethernet, 12));
        let (from, to, datagram) = if ethertype == ETHERTYPES.0 {
            let (from, to, datagram) = parse_ipv4(packet)?;
            (IpAddr::V4(from), IpAddr::V4(to), datagram)
        } else if ethertype == ETHERTYPES.1 {
            let (from, to, datagram) = parse_ipv6(packet)?;
            (IpAddr::V6(from), IpAddr::V6(to), datagram)
        } else {
            return Err(NoDatagram::Foreign);
        };
        if !(is_single(from) && is_single(to)) {
            return Err(NoDatagram::Address);
        }
        let header = datagram.first_chunk::<UDP_BYTES>().ok_or(NoDatagram::Short)?;
        let from = SocketAddr::new(from, u16::from_be_bytes(part(header, 0)));
        let to = SocketAddr::new(to, u16::from_be_bytes(part(header, 2)));
        let len = usize::from(u16::from_be_bytes(part(header, 4)));
        let datagram = datagram.get(..len).ok_or(NoDatagram::Short)?;
        let content = datagram.get(UDP_BYTES..).ok_or(NoDatagram::Short)?;
        let pseudo_header = pseudo_header(from, to, len);
        let is_right = match u16::from_be_bytes(part(header, 6)) {
            // IPv6 has no checksum of its own, so that of UDP must be there.
            0 => from.is_ipv4(),
            checksum => {
                fold(pseudo_header + sum(datagram)) == 0xffff
                    || unfinished == Unfinished::Accept && checksum == fold(pseudo_header)
            }
        };
        if is_right { Ok(Self { link, from, to, content }) } else { Err(NoDatagram::Checksum) }
    }

    /// Writes the frame to the start of `room`. Returns its bytes; `None` if there is no room, the addresses are of
    /// different versions, or the datagram is too long.
    pub fn write(&self, room: &mut [u8]) -> Option<usize> {
        let udp_bytes = UDP_BYTES + self.content.len();
        let udp_len = u16::try_from(udp_bytes).ok()?;
        let ip_bytes = if self.from.is_ipv4() { IPV4_BYTES } else { IPV6_BYTES };
        let len = ETHERNET_BYTES + ip_bytes + udp_bytes;
        let (ethernet, packet) = room.get_mut(..len)?.split_at_mut(ETHERNET_BYTES);
        let (ip, datagram) = packet.split_at_mut(ip_bytes);
        ethernet[..6].copy_from_slice(&self.link.to);
        ethernet[6..12].copy_from_slice(&self.link.from);
        let ethertype = match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let total = u16::try_from(IPV4_BYTES + udp_bytes).ok()?;
                write_ipv4(ip, from, to, total);
                ETHERTYPES.0
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                write_ipv6(ip, from, to, udp_len);
                ETHERTYPES.1
            }
            _ => return None,
        };
        ethernet[12..].copy_from_slice(&ethertype.to_be_bytes());
        let (header, content) = datagram.split_at_mut(UDP_BYTES);
        content.copy_from_slice(self.content);
        header[..2].copy_from_slice(&self.from.port().to_be_bytes());
        header[2..4].copy_from_slice(&self.to.port().to_be_bytes());
        header[4..6].copy_from_slice(&udp_len.to_be_bytes());
        header[6..].fill(0);
        let checksum = !fold(pseudo_header(self.from, self.to, udp_bytes) + sum(datagram));
        // 0 says that there is none; both numbers are zero to a sum of this kind.
        let checksum = if checksum == 0 { 0xffff } else { checksum };
        datagram[6..8].copy_from_slice(&checksum.to_be_bytes());
        Some(len)
    }
}

/// Addresses and content of a packet of IPv4.
fn parse_ipv4(packet: &[u8]) -> Result<(Ipv4Addr, Ipv4Addr, &[u8]), NoDatagram> {
    let header = packet.first_chunk::<IPV4_BYTES>().ok_or(NoDatagram::Short)?;
    // Version 4, and five words of header; no fragment, neither the last nor another; UDP.
    let fragment = u16::from_be_bytes(part(header, 6)) & 0x3fff;
    if header[0] != 0x45 || fragment != 0 || header[9] != UDP {
        return Err(NoDatagram::Foreign);
    }
    if fold(sum(header)) != 0xffff {
        return Err(NoDatagram::Checksum);
    }
    let total = usize::from(u16::from_be_bytes(part(header, 2)));
    let content = packet.get(IPV4_BYTES..total).ok_or(NoDatagram::Short)?;
    Ok((Ipv4Addr::from(part::<4>(header, 12)), Ipv4Addr::from(part::<4>(header, 16)), content))
}

/// Addresses and content of a packet of IPv6.
fn parse_ipv6(packet: &[u8]) -> Result<(Ipv6Addr, Ipv6Addr, &[u8]), NoDatagram> {
    let (header, content) = packet.split_first_chunk::<IPV6_BYTES>().ok_or(NoDatagram::Short)?;
    if header[0] >> 4 != 6 || header[6] != UDP {
        return Err(NoDatagram::Foreign);
    }
    let len = usize::from(u16::from_be_bytes(part(header, 4)));
    let content = content.get(..len).ok_or(NoDatagram::Short)?;
    Ok((Ipv6Addr::from(part::<16>(header, 8)), Ipv6Addr::from(part::<16>(header, 24)), content))
}

/// Writes a header of a packet that is not to be divided, as replies fit in a packet.
fn write_ipv4(header: &mut [u8], from: Ipv4Addr, to: Ipv4Addr, total: u16) {
    header.fill(0);
    header[0] = 0x45;
    header[2..4].copy_from_slice(&total.to_be_bytes());
    header[6] = 0x40;
    header[8] = HOPS_MAX;
    header[9] = UDP;
    header[12..16].copy_from_slice(&from.octets());
    header[16..].copy_from_slice(&to.octets());
    let checksum = !fold(sum(header));
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

fn write_ipv6(header: &mut [u8], from: Ipv6Addr, to: Ipv6Addr, len: u16) {
    header[..4].copy_from_slice(&[0x60, 0, 0, 0]);
    header[4..6].copy_from_slice(&len.to_be_bytes());
    header[6] = UDP;
    header[7] = HOPS_MAX;
    header[8..24].copy_from_slice(&from.octets());
    header[24..].copy_from_slice(&to.octets());
}

/// Whether one host of a network can have this address.
fn is_single(ip: IpAddr) -> bool {
    let is_for_all = ip == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() || is_for_all)
}

/// The address with the interface where it is valid, as the sockets of the system give it.
#[cfg(target_os = "linux")]
pub(super) fn at_interface(address: SocketAddr, interface: u32) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => {
            SocketAddr::V6(SocketAddrV6::new(*v6.ip(), v6.port(), 0, interface))
        }
        _ => address,
    }
}

/// The bytes of a header from `start` on, which it has: both are constants.
fn part<const LEN: usize>(header: &[u8], start: usize) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes.copy_from_slice(&header[start..start + LEN]);
    bytes
}

/// Entry point for fuzzing: any bytes are a frame or are none. A frame that is written again is the same.
///
/// # Panics
/// When a frame is read differently after it was written. Never otherwise, whatever the bytes.
#[doc(hidden)]
pub fn fuzz_frame(bytes: &[u8]) {
    let strict = Frame::parse(bytes, Unfinished::Refuse);
    let lenient = Frame::parse(bytes, Unfinished::Accept);
    assert!(strict.is_err() || strict == lenient);
    let Ok(frame) = lenient else { return };
    assert!(frame.content.len() < bytes.len());
    let mut again = vec![0; bytes.len()];
    let len = frame.write(&mut again).expect("it is not longer than what was read");
    assert_eq!(Frame::parse(&again[..len], Unfinished::Refuse), Ok(frame));
}

/// Frames for fuzzing to start from.
#[doc(hidden)]
pub fn fuzz_frame_samples() -> Vec<Vec<u8>> {
    let link = Link { from: [2, 0, 0, 0, 0, 1], to: [2, 0, 0, 0, 0, 2] };
    let v4 = [SocketAddr::from(([10, 0, 0, 1], 4000)), SocketAddr::from(([10, 0, 0, 2], 11300))];
    let v6 = v4.map(|address| {
        let SocketAddr::V4(v4) = address else { return address };
        SocketAddr::from((v4.ip().to_ipv6_mapped(), v4.port()))
    });
    let frames = [v4, v6].map(|[from, to]| {
        let mut bytes = vec![0; 100];
        let frame = Frame { link, from, to, content: b"a datagram" };
        let len = frame.write(&mut bytes).unwrap_or_default();
        bytes.truncate(len.next_multiple_of(64));
        bytes
    });
    frames.into()
}
