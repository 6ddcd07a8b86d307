//! Datagrams.

use crate::datagram::{
    Content, DATAGRAM_BYTES_MAX, Directory, HashKind, Header, Kind, Mode, Operation, Padding, Request,
    Response, Status, Writer,
};

/// Reads `bytes` as a datagram.
///
/// # Panics
/// When what was read and is written again is read differently. Never otherwise, whatever the bytes.
pub fn datagram(bytes: &[u8]) {
    let Ok((header, content)) = Header::decode(bytes) else { return };
    assert!(content.len() < bytes.len());
    let mut buffer = vec![0; bytes.len()];
    let mut writer = Writer::new(&mut buffer);
    if let Ok(requests) = Content::requests(content, header.count) {
        assert!(requests.clone().all(|request| writer.push_request(&request)));
        assert_eq!(requests.clone().count(), usize::from(header.count));
        let len = writer.finish(header, Padding::None);
        let (again, content) = Header::decode(&buffer[..len]).expect("written by us");
        assert_eq!(again, header);
        let again = Content::requests(content, again.count).expect("written by us");
        assert!(again.eq(requests));
        writer = Writer::new(&mut buffer);
    }
    if let Ok(responses) = Content::responses(content, header.count) {
        assert!(responses.clone().all(|response| writer.push_response(&response)));
        let len = writer.finish(header, Padding::None);
        let (again, content) = Header::decode(&buffer[..len]).expect("written by us");
        let again = Content::responses(content, again.count).expect("written by us");
        assert!(again.eq(responses));
    }
    if let Ok(directory) = Directory::decode(content) {
        assert!(directory.partition_of(u64::MAX) < directory.partition_ports.len());
        assert_eq!(directory.encode(), content);
    }
}

/// A datagram of each kind, for [`datagram()`].
pub fn datagram_samples() -> Vec<Vec<u8>> {
    let sample = |kind, write: fn(&mut Writer<'_>) -> bool| {
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        let mut writer = Writer::new(&mut buffer);
        assert!(write(&mut writer));
        let len = writer.finish(Header { kind, epoch: 1, cookie: 2, sequence: 3, count: 0 }, Padding::Train);
        buffer[..len].to_vec()
    };
    vec![
        sample(Kind::Requests, |writer| {
            let get = Request { operation: Operation::Get, key: b"key", value: b"", opaque: 1, expiry_s: 0 };
            let set =
                Request { operation: Operation::Set, key: b"other", value: b"value", opaque: 2, expiry_s: 9 };
            writer.push_request(&get) && writer.push_request(&set)
        }),
        sample(Kind::Responses, |writer| {
            writer.push_response(&Response { status: Status::Done, opaque: 1, value: b"a value" })
                && writer.push_response(&Response::bare(Status::Absent, 2))
        }),
        sample(Kind::Directory, |writer| {
            let directory = Directory {
                mode: Mode::ConcurrentReads,
                hands_over: true,
                hash_kind: HashKind::Xxh3,
                hash_seed: 5,
                datagram_bytes_max: DATAGRAM_BYTES_MAX as u16,
                partition_ports: vec![11_300, 11_301],
                worker_ports: vec![11_300],
            };
            writer.push_bytes(&directory.encode())
        }),
        sample(Kind::Moved, |_| true),
    ]
}
