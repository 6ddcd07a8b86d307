use proptest::prelude::*;

use super::*;

fn link() -> Link {
    Link { from: [2, 0, 0, 0, 0, 1], to: [2, 0, 0, 0, 0, 2] }
}

fn v4(content: &[u8]) -> Frame<'_> {
    let (from, to) = (SocketAddr::from(([10, 0, 0, 1], 4000)), SocketAddr::from(([10, 0, 0, 2], 11300)));
    Frame { link: link(), from, to, content }
}

fn v6(content: &[u8]) -> Frame<'_> {
    let ip = |last| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last);
    let (from, to) = (SocketAddr::from((ip(1), 4000)), SocketAddr::from((ip(2), 11300)));
    Frame { link: link(), from, to, content }
}

fn written(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = vec![0xee; 2000];
    let len = frame.write(&mut bytes).expect("room");
    bytes.truncate(len);
    bytes
}

fn parse(bytes: &[u8]) -> Result<Frame<'_>, NoDatagram> {
    Frame::parse(bytes, Unfinished::Refuse)
}

#[test]
fn a_frame_is_as_the_protocols_say() {
    // Written down by hand from RFC 791 and RFC 768, with checksums of an independent program.
    let expected: [u8; 46] = [
        2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, // Ethernet
        0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0x26, 0xcb, 10, 0, 0, 1, 10, 0, 0, 2, // IP
        0x0f, 0xa0, 0x2c, 0x24, 0, 12, 0xd1, 0x3e, b'p', b'i', b'n', b'g', // UDP
    ];
    assert_eq!(written(&v4(b"ping")), expected);
    assert_eq!(parse(&expected), Ok(v4(b"ping")));
}

#[test]
fn what_follows_a_datagram_is_padding() {
    for frame in [v4(b"x"), v6(b"x"), v4(b""), v6(b"")] {
        let mut bytes = written(&frame);
        bytes.resize(80, 0xaa);
        assert_eq!(parse(&bytes), Ok(frame));
    }
}

#[test]
fn every_shorter_frame_is_refused() {
    for frame in [v4(b"content"), v6(b"content")] {
        let bytes = written(&frame);
        for len in 0..bytes.len() {
            assert_eq!(parse(&bytes[..len]), Err(NoDatagram::Short), "{len} bytes");
        }
    }
}

#[test]
fn every_changed_bit_of_ip_and_udp_is_noticed() {
    for frame in [v4(b"content"), v6(b"content")] {
        let bytes = written(&frame);
        // Neither the checksum of IPv6's other fields nor that of the link is here: the device checks frames.
        let unchecked = if frame.from.is_ipv4() { 14..14 } else { 14..18 };
        for bit in 14 * 8..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let is_hops = !frame.from.is_ipv4() && bit / 8 == 21;
            if !unchecked.contains(&(bit / 8)) && !is_hops {
                assert!(parse(&changed).is_err(), "bit {bit}");
            }
        }
    }
}

#[test]
fn only_ipv4_goes_without_a_checksum() {
    let mut bytes = written(&v4(b"content"));
    bytes[40..42].fill(0);
    assert_eq!(parse(&bytes), Ok(v4(b"content")));
    let mut bytes = written(&v6(b"content"));
    bytes[60..62].fill(0);
    assert_eq!(parse(&bytes), Err(NoDatagram::Checksum));
}

#[test]
fn unfinished_checksums_are_accepted_where_asked() {
    for (frame, at) in [(v4(b"content"), 40), (v6(b"content"), 60)] {
        let mut bytes = written(&frame);
        let partial = fold(pseudo_header(frame.from, frame.to, 15));
        bytes[at..at + 2].copy_from_slice(&partial.to_be_bytes());
        assert_eq!(parse(&bytes), Err(NoDatagram::Checksum));
        assert_eq!(Frame::parse(&bytes, Unfinished::Accept), Ok(frame));
    }
}

/// Changes the header of IP at these places, with a right checksum.
fn with_header(changes: &[(usize, u8)]) -> Vec<u8> {
    let mut bytes = written(&v4(b"content"));
    for (place, byte) in changes {
        bytes[14 + place] = *byte;
    }
    bytes[24..26].fill(0);
    let checksum = !fold(sum(&bytes[14..34]));
    bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

#[test]
fn fragments_options_and_lying_lengths_are_refused() {
    assert_eq!(parse(&with_header(&[])), Ok(v4(b"content")));
    // More fragments, or another than the first.
    assert_eq!(parse(&with_header(&[(6, 0x20)])), Err(NoDatagram::Foreign));
    assert_eq!(parse(&with_header(&[(7, 1)])), Err(NoDatagram::Foreign));
    // Options, another version, another protocol.
    assert_eq!(parse(&with_header(&[(0, 0x46)])), Err(NoDatagram::Foreign));
    assert_eq!(parse(&with_header(&[(0, 0x65)])), Err(NoDatagram::Foreign));
    assert_eq!(parse(&with_header(&[(9, 6)])), Err(NoDatagram::Foreign));
    // Longer than the frame, shorter than the header, shorter than the datagram says.
    for total in [(3, 255), (3, 19), (3, 28), (3, 0)] {
        assert_eq!(parse(&with_header(&[total])), Err(NoDatagram::Short), "{total:?}");
    }
    // Nobody's addresses: of a group, of all, of none, of the host itself.
    for first in [224, 255, 0, 127] {
        let rest = if first == 127 { 1 } else { first };
        let address = [(12, first), (13, rest), (14, rest), (15, rest)];
        assert_eq!(parse(&with_header(&address)), Err(NoDatagram::Address), "{first}");
    }
    for (place, byte) in [(0, 1), (6, 0xff)] {
        let mut bytes = written(&v4(b"content"));
        bytes[place] = byte;
        assert_eq!(parse(&bytes), Err(NoDatagram::Address));
    }
    let mut tagged = written(&v4(b"content"));
    tagged.splice(12..12, [0x81, 0, 0, 5]);
    assert_eq!(parse(&tagged), Err(NoDatagram::Foreign));
}

#[test]
fn a_datagram_without_room_is_not_written() {
    let frame = v4(b"content");
    let len = written(&frame).len();
    assert_eq!(frame.write(&mut vec![0; len - 1]), None);
    assert_eq!(frame.write(&mut vec![0; len]), Some(len));
    assert_eq!(Frame { to: v6(b"").to, ..frame }.write(&mut [0; 200]), None);
    assert_eq!(v4(&[0; 65_508]).write(&mut vec![0; 70_000]), None);
    assert_eq!(v4(&[0; 65_507]).write(&mut vec![0; 70_000]), Some(65_507 + 42));
}

#[test]
fn samples_are_frames() {
    for sample in fuzz_frame_samples() {
        assert!(parse(&sample).is_ok());
        fuzz_frame(&sample);
    }
}

proptest! {
    #[test]
    fn frames_survive_being_written(
        is_v6 in any::<bool>(),
        ports in any::<(u16, u16)>(),
        content in proptest::collection::vec(any::<u8>(), 0..1500),
    ) {
        let mut frame = if is_v6 { v6(&content) } else { v4(&content) };
        frame.from.set_port(ports.0);
        frame.to.set_port(ports.1);
        let bytes = written(&frame);
        prop_assert_eq!(parse(&bytes), Ok(frame));
    }

    #[test]
    fn any_bytes_are_read_without_panic(
        is_v6 in any::<bool>(),
        content in proptest::collection::vec(any::<u8>(), 0..40),
        changes in proptest::collection::vec(any::<(u8, u8)>(), 0..4),
        len in any::<u8>(),
    ) {
        let mut bytes = written(&if is_v6 { v6(&content) } else { v4(&content) });
        for (place, byte) in changes {
            let place = usize::from(place) % bytes.len();
            bytes[place] = byte;
        }
        bytes.truncate(usize::from(len));
        fuzz_frame(&bytes);
    }
}
