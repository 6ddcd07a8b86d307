use proptest::prelude::*;

use super::*;

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        Just(Operation::Get),
        Just(Operation::Set),
        Just(Operation::Add),
        Just(Operation::Delete),
        Just(Operation::Touch),
        Just(Operation::Probe),
    ]
}

fn status() -> impl Strategy<Value = Status> {
    prop_oneof![
        Just(Status::Done),
        Just(Status::Absent),
        Just(Status::Exists),
        Just(Status::TooLarge),
        Just(Status::NoRoom),
        Just(Status::Failed),
    ]
}

fn header(kind: Kind) -> Header {
    Header { kind, epoch: 0xabcd, cookie: 0x1234_5678, sequence: 9, count: 0 }
}

proptest! {
    #[test]
    fn requests_are_read_as_they_were_written(
        given in proptest::collection::vec(
            (operation(), proptest::collection::vec(any::<u8>(), 0..40), proptest::collection::vec(any::<u8>(), 0..90),
             any::<u32>(), any::<u32>()),
            0..40,
        ),
        padding in prop_oneof![Just(Padding::None), Just(Padding::Train), (0_usize..2_000).prop_map(Padding::To)],
    ) {
        let mut buffer = [0xee; DATAGRAM_BYTES_MAX];
        let mut writer = Writer::new(&mut buffer);
        let mut written = Vec::new();
        for (operation, key, value, opaque, expiry_s) in &given {
            let value: &[u8] = if operation.has_value() { value } else { &[] };
            let request = Request { operation: *operation, key, value, opaque: *opaque, expiry_s: *expiry_s };
            let (room, has_room) = (writer.room(), writer.push_request(&request));
            prop_assert_eq!(has_room, request.bytes() <= room);
            if has_room {
                written.push(request);
            }
        }
        let len = writer.finish(header(Kind::Requests), padding);
        let (read, content) = Header::decode(&buffer[..len]).unwrap();
        prop_assert_eq!(read, Header { count: written.len() as u8, ..header(Kind::Requests) });
        let requests: Vec<Request<'_>> = Content::requests(content, read.count).unwrap().collect();
        prop_assert_eq!(requests, written);
    }

    #[test]
    fn responses_are_read_as_they_were_written(
        given in proptest::collection::vec(
            (status(), proptest::collection::vec(any::<u8>(), 0..90), any::<u32>()),
            0..60,
        ),
    ) {
        let mut buffer = [0xee; DATAGRAM_BYTES_MAX];
        let mut writer = Writer::new(&mut buffer);
        let mut written = Vec::new();
        for (status, value, opaque) in &given {
            let value: &[u8] = if *status == Status::Done { value } else { &[] };
            let response = Response { status: *status, opaque: *opaque, value };
            if writer.push_response(&response) {
                written.push(response);
            }
        }
        let state = writer.state();
        let len = Writer::resume(&mut buffer, state).finish(header(Kind::Responses), Padding::Train);
        prop_assert!(len.is_multiple_of(64) || len == DATAGRAM_BYTES_MAX);
        let (read, content) = Header::decode(&buffer[..len]).unwrap();
        let responses: Vec<Response<'_>> = Content::responses(content, read.count).unwrap().collect();
        prop_assert_eq!(responses, written);
    }

    #[test]
    fn directories_are_read_as_they_were_written(
        partition_ports in proptest::collection::vec(any::<u16>(), 1..=PORTS_MAX),
        worker_ports in proptest::collection::vec(any::<u16>(), 1..=PORTS_MAX),
        hash_seed: u64,
        datagram_bytes_max: u16,
        mode in prop_oneof![Just(Mode::Shared), Just(Mode::Exclusive), Just(Mode::ConcurrentReads)],
        hands_over: bool,
        hash: u64,
    ) {
        let directory = Directory {
            mode, hands_over, hash_kind: HashKind::Xxh3, hash_seed, datagram_bytes_max, partition_ports, worker_ports,
        };
        let bytes = directory.encode();
        prop_assert!(HEADER_BYTES + bytes.len() <= DIRECTORY_REQUEST_BYTES);
        prop_assert!(directory.partition_ports.contains(&directory.port_of(hash)));
        prop_assert_eq!(Directory::decode(&bytes), Ok(directory));
        prop_assert_eq!(Directory::decode(&bytes[..bytes.len() - 1]), Err(Malformed::Invalid));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100), fix: bool) {
        let mut bytes = bytes;
        if fix && bytes.len() >= HEADER_BYTES {
            let length = bytes.len() as u16;
            bytes[..2].copy_from_slice(&[0xa1, 1]);
            bytes[13] %= 6;
            bytes[14..16].copy_from_slice(&length.to_le_bytes());
        }
        crate::fuzz::datagram(&bytes);
    }
}

/// One request with each of its fields changed to each value of a byte: what it says is true, or it is refused.
#[test]
fn every_field_may_lie() {
    let mut buffer = [0; 64];
    let mut writer = Writer::new(&mut buffer);
    let request = Request { operation: Operation::Set, key: b"key", value: b"value", opaque: 7, expiry_s: 0 };
    assert!(writer.push_request(&request));
    let len = writer.finish(header(Kind::Requests), Padding::None);
    for at in 0..len {
        for byte in 0..=255 {
            let mut datagram = buffer;
            datagram[at] = byte;
            crate::fuzz::datagram(&datagram[..len]);
            crate::fuzz::datagram(&datagram[..len - 1]);
        }
    }
    for short in 0..len {
        assert_eq!(Header::decode(&buffer[..short]).err(), Some(Malformed::Short), "{short} bytes");
    }
    let mut foreign = buffer;
    foreign[1] = 2;
    assert_eq!(Header::decode(&foreign).err(), Some(Malformed::Foreign));
    let (_, content) = Header::decode(&buffer[..len]).unwrap();
    assert_eq!(Content::requests(content, 0).err(), Some(Malformed::Invalid));
    assert_eq!(Content::requests(content, 2).err(), Some(Malformed::Invalid));
}

/// A reply has room for a response to every request, whatever the requests are.
#[test]
fn responses_without_values_have_room() {
    let requests_max = (DATAGRAM_BYTES_MAX - HEADER_BYTES) / REQUEST_HEAD_BYTES;
    const { assert!(RESPONSE_HEAD_BYTES <= REQUEST_HEAD_BYTES) };
    let mut buffer = [0; DATAGRAM_BYTES_MAX];
    let mut writer = Writer::new(&mut buffer);
    for opaque in 0..requests_max as u32 {
        assert!(writer.push_response(&Response::bare(Status::NoRoom, opaque)));
    }
}
