//! The checksum of the Internet protocols (RFC 1071).

use std::net::{IpAddr, SocketAddr};

/// The number of UDP among the protocols of IP.
pub(super) const UDP: u8 = 17;

/// The sum of the bytes as 16-bit numbers, of which a missing last byte is 0.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    // Carries go to the upper half: 2³² words of 32 bits have room.
    let sum: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    sum + u64::from(u32::from_be_bytes(last))
}

/// The sum of what the checksum of UDP covers beside the datagram: addresses, protocol and length.
pub(super) fn pseudo_header(from: SocketAddr, to: SocketAddr, len: usize) -> u64 {
    let address = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => sum(&ip.octets()),
        IpAddr::V6(ip) => sum(&ip.octets()),
    };
    address(from) + address(to) + u64::from(UDP) + len as u64
}

/// The sum with all carries added, which is 0 only for 0.
pub(super) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_16_bits() {
        // The example of RFC 1071.
        assert_eq!(fold(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])), 0xddf2);
        for len in 0..9 {
            let bytes: Vec<u8> = (0..len).map(|byte| 200 + byte).collect();
            let each = bytes
                .chunks(2)
                .map(|pair| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0)));
            assert_eq!(fold(sum(&bytes)), fold(each.sum()));
        }
    }
}
