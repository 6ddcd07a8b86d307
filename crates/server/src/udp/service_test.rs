//! One worker's datagrams, one by one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use alluvium_io::SimulatedClock;
use alluvium_io::datagrams::{
    Burst, Datagrams as _, NetworkFaults, Outgoing, SimulatedDatagrams, SimulatedNetwork,
};
use alluvium_protocol::datagram::{
    Content, DATAGRAM_BYTES_MAX, DIRECTORY_REQUEST_BYTES, Directory, HEADER_BYTES, Header, Kind, Mode,
    Operation, Padding, Request, Response, Status, VALUE_BYTES_MAX, Writer,
};

use super::counters::{Counters, Figure};
use super::{Directing, Items, Service, Way};
use crate::changes::Event;
use crate::store::{DatabaseNumber, Databases as _};
use crate::{CacheSettings, CacheStore, Store as _};

const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 11_300);
const SHARED: Way = Way { mode: Mode::Shared, hands_over: false };
const PEER: ([u8; 4], u16) = ([10, 0, 0, 2], 4_000);

/// A worker, and a peer that sends what it likes.
struct Bench {
    network: SimulatedNetwork,
    clock: SimulatedClock,
    service: Service<SimulatedDatagrams>,
    counters: Counters,
    store: CacheStore,
    peer: SimulatedDatagrams,
    events: Vec<(Vec<u8>, Event)>,
    epoch: u16,
    cookie: u32,
}

type Owned = (Status, u32, Vec<u8>);

fn get(key: &[u8], opaque: u32) -> Request<'_> {
    Request { operation: Operation::Get, key, value: b"", opaque, expiry_s: 0 }
}

fn set<'a>(key: &'a [u8], value: &'a [u8], opaque: u32) -> Request<'a> {
    Request { operation: Operation::Set, key, value, opaque, expiry_s: 0 }
}

impl Bench {
    /// A peer that has its cookie.
    fn new() -> Self {
        let network = SimulatedNetwork::new(1, NetworkFaults::default());
        let clock = SimulatedClock::default();
        let server = SocketAddr::from(SERVER);
        let directing = Arc::new(Directing::new(&[server], SHARED, Arc::new(clock.clone()), None));
        let mut bench = Self {
            service: Service::new(network.bind(server), directing, 0, None),
            counters: Counters::default(),
            store: CacheStore::new(CacheSettings::new(16 << 20), 1).unwrap(),
            peer: network.bind(SocketAddr::from(PEER)),
            events: Vec::new(),
            epoch: 0,
            cookie: 0,
            network,
            clock,
        };
        bench.learn();
        bench
    }

    fn learn(&mut self) -> Directory {
        let replies = self.raw(&[self.question(DIRECTORY_REQUEST_BYTES)]);
        let (header, content) = Header::decode(&replies[0]).unwrap();
        assert_eq!((header.kind, header.sequence), (Kind::Directory, 77));
        (self.epoch, self.cookie) = (header.epoch, header.cookie);
        Directory::decode(content).unwrap()
    }

    fn question(&self, bytes: usize) -> Vec<u8> {
        let mut buffer = vec![0; bytes];
        let header = Header { kind: Kind::AskDirectory, epoch: 0, cookie: 0, sequence: 77, count: 0 };
        Writer::new(&mut buffer).finish(header, Padding::To(bytes));
        buffer
    }

    fn datagram(&self, sequence: u32, requests: &[Request<'_>]) -> Vec<u8> {
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        let mut writer = Writer::new(&mut buffer);
        assert!(requests.iter().all(|request| writer.push_request(request)));
        let (epoch, cookie) = (self.epoch, self.cookie);
        let len =
            writer.finish(Header { kind: Kind::Requests, epoch, cookie, sequence, count: 0 }, Padding::None);
        buffer[..len].to_vec()
    }

    /// Sends datagrams in one burst and returns the replies.
    fn raw(&mut self, datagrams: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut outgoing = Outgoing::new(1 << 20);
        for datagram in datagrams {
            outgoing.room(datagram.len()).unwrap().copy_from_slice(datagram);
            outgoing.commit(SocketAddr::from(SERVER), datagram.len());
        }
        self.peer.send_burst(&mut outgoing).unwrap();
        while self.serve(false) > 0 {}
        let (mut burst, mut replies) = (Burst::new(32), Vec::new());
        while self.peer.receive_burst(&mut burst).unwrap() > 0 {
            replies.extend(burst.datagrams().map(|(_, bytes)| bytes.to_vec()));
        }
        assert!(replies.iter().all(|reply| reply.len() <= DATAGRAM_BYTES_MAX));
        replies
    }

    fn serve(&mut self, is_paused: bool) -> usize {
        let Self { service, counters, store, events, .. } = self;
        let mut changed = |key: &[u8], event| events.push((key.to_vec(), event));
        let mut items = Items { database: store.database(DatabaseNumber::FIRST), changed: &mut changed };
        service.serve(&mut items, counters, is_paused).unwrap().0
    }

    /// Sends datagrams with these requests in one burst and returns the responses of each.
    fn ask(&mut self, datagrams: &[&[Request<'_>]]) -> Vec<Vec<Owned>> {
        let sent: Vec<Vec<u8>> =
            datagrams.iter().zip(1..).map(|(requests, number)| self.datagram(number, requests)).collect();
        let replies = self.raw(&sent);
        assert_eq!(replies.len(), sent.len());
        let read = |(reply, sequence): (&Vec<u8>, u32)| {
            let (header, content) = Header::decode(reply).unwrap();
            assert_eq!((header.kind, header.sequence), (Kind::Responses, sequence));
            let responses = Content::responses(content, header.count).unwrap();
            responses.map(|Response { status, opaque, value }| (status, opaque, value.to_vec())).collect()
        };
        replies.iter().zip(1..).map(read).collect()
    }

    fn only(&mut self, request: Request<'_>) -> (Status, Vec<u8>) {
        let mut responses = self.ask(&[&[request]]);
        let (status, opaque, value) = responses.remove(0).remove(0);
        assert_eq!(opaque, request.opaque);
        (status, value)
    }

    fn count(&self, figure: Figure) -> u64 {
        self.counters.get(figure)
    }
}

#[test]
fn each_operation_does_what_it_says() {
    let mut bench = Bench::new();
    let with = |operation, value| Request { operation, value, ..get(b"k", 5) };
    let mut status = |request| bench.only(request).0;
    assert_eq!(status(with(Operation::Get, b"")), Status::Absent);
    assert_eq!(status(with(Operation::Delete, b"")), Status::Absent);
    assert_eq!(status(with(Operation::Touch, b"")), Status::Absent);
    assert_eq!(status(with(Operation::Probe, b"")), Status::Absent);
    assert_eq!(status(with(Operation::Add, b"1")), Status::Done);
    assert_eq!(status(with(Operation::Add, b"2")), Status::Exists);
    assert_eq!(status(with(Operation::Probe, b"")), Status::Done);
    assert_eq!(bench.only(get(b"k", 1)), (Status::Done, b"1".to_vec()));
    assert_eq!(bench.only(set(b"k", b"3", 1)).0, Status::Done);
    assert_eq!(bench.only(get(b"k", 1)), (Status::Done, b"3".to_vec()));
    assert_eq!(bench.only(Request { expiry_s: 100, ..with(Operation::Touch, b"") }).0, Status::Done);
    assert_eq!(bench.only(with(Operation::Delete, b"")).0, Status::Done);
    assert_eq!(bench.only(get(b"k", 1)).0, Status::Absent);
    let names: Vec<&str> = bench.events.iter().map(|(_, event)| event.name).collect();
    assert_eq!(names, ["set", "set", "expire", "del"]);
    assert_eq!(bench.count(Figure::Requests), 13);
}

#[test]
fn an_item_expires() {
    let mut bench = Bench::new();
    bench.only(Request { expiry_s: 1, ..set(b"k", b"v", 1) });
    assert_eq!(bench.only(get(b"k", 1)).0, Status::Done);
    std::thread::sleep(Duration::from_millis(1_050));
    assert_eq!(bench.only(get(b"k", 1)).0, Status::Absent);
}

/// Within a burst, what is done with one key is done in the order of its arrival, whatever is looked up together.
#[test]
fn requests_for_a_key_keep_their_order() {
    let mut bench = Bench::new();
    let keys: Vec<Vec<u8>> = (0..20_u8).map(|number| vec![number % 3, number % 2]).collect();
    let values: Vec<Vec<u8>> = (0..200_u8).map(|number| vec![number]).collect();
    let mut random = 7_u64;
    for _ in 0..50 {
        let mut model = std::collections::HashMap::new();
        let mut bursts: Vec<Vec<Request<'_>>> = Vec::new();
        let mut expected: Vec<Vec<Owned>> = Vec::new();
        for key in &keys {
            bench.only(set(key, b"first", 0));
            model.insert(&key[..], b"first".to_vec());
        }
        for _ in 0..8 {
            let (mut requests, mut responses) = (Vec::new(), Vec::new());
            for opaque in 0..30 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let draw = (random >> 40) as usize;
                let (key, value) = (&keys[draw % 20][..], &values[draw / 32 % 200]);
                if draw.is_multiple_of(7) {
                    requests.push(set(key, value, opaque));
                    responses.push((Status::Done, opaque, Vec::new()));
                    model.insert(key, value.clone());
                } else {
                    requests.push(get(key, opaque));
                    responses.push((Status::Done, opaque, model[key].clone()));
                }
            }
            bursts.push(requests);
            expected.push(responses);
        }
        let bursts: Vec<&[Request<'_>]> = bursts.iter().map(Vec::as_slice).collect();
        assert_eq!(bench.ask(&bursts), expected);
    }
}

/// Few gets among many writes, at each position: also where the steps of a burst have no more room.
#[test]
fn every_get_among_many_writes_has_its_value() {
    let mut bench = Bench::new();
    bench.only(set(b"k", b"v", 0));
    for shift in 0..41 {
        let request = |number: u32| match number % 41 == shift {
            true => get(b"k", number),
            false => set(b"other", b"w", number),
        };
        let requests: Vec<Request<'_>> = (0..12 * 54).map(request).collect();
        let datagrams: Vec<&[Request<'_>]> = requests.chunks(54).collect();
        for (status, number, value) in bench.ask(&datagrams).into_iter().flatten() {
            let expected: &[u8] = if number % 41 == shift { b"v" } else { b"" };
            assert_eq!((status, &value[..]), (Status::Done, expected), "request {number}");
        }
    }
}

#[test]
fn values_are_as_large_as_a_datagram() {
    let mut bench = Bench::new();
    let store = |bench: &Bench, key: &[u8], len| {
        let value = vec![b'v'; len];
        bench.store.database(DatabaseNumber::FIRST).insert(key, &value, None).unwrap();
    };
    for len in [0, 1, VALUE_BYTES_MAX - 1, VALUE_BYTES_MAX] {
        store(&bench, b"k", len);
        assert_eq!(bench.only(get(b"k", 3)), (Status::Done, vec![b'v'; len]));
    }
    for len in [VALUE_BYTES_MAX + 1, 5_000, 100_000] {
        store(&bench, b"k", len);
        assert_eq!(bench.only(get(b"k", 3)), (Status::TooLarge, Vec::new()));
    }
    store(&bench, b"k", 1_000);
    store(&bench, b"s", 100);
    let replies = bench.ask(&[&[get(b"k", 1), get(b"k", 2), get(b"s", 3)], &[get(b"k", 4)]]);
    let statuses = |number: usize| replies[number].iter().map(|(status, ..)| *status).collect::<Vec<_>>();
    assert_eq!(statuses(0), [Status::Done, Status::NoRoom, Status::Done]);
    assert_eq!(statuses(1), [Status::Done]);
    // As many requests as a datagram has room for, each for a value that has no room.
    store(&bench, b"", VALUE_BYTES_MAX);
    let requests: Vec<Request<'_>> = (0..89).map(|opaque| get(b"", opaque)).collect();
    let replies = bench.ask(&[&requests]);
    assert_eq!(replies[0].len(), 89);
    assert!(replies[0].iter().all(|(status, ..)| *status == Status::NoRoom));
}

#[test]
fn without_a_cookie_nothing_is_executed_and_little_is_sent() {
    let mut bench = Bench::new();
    bench.only(set(b"k", b"v", 1));
    let good = bench.cookie;
    for cookie in [0, good ^ 1, !good] {
        bench.cookie = cookie;
        let datagram = bench.datagram(9, &[set(b"k", b"other", 1), get(b"k", 2)]);
        let replies = bench.raw(&[datagram]);
        assert_eq!(replies.len(), 1);
        let (header, content) = Header::decode(&replies[0]).unwrap();
        assert_eq!((header.kind, header.sequence, content.len()), (Kind::NoCookie, 9, 0));
        assert_eq!(replies[0].len(), HEADER_BYTES);
    }
    // A directory is sent only to those who have sent as many bytes.
    let directory_bytes = HEADER_BYTES + bench.learn().encode().len();
    assert!(bench.raw(&[bench.question(directory_bytes - 1)]).is_empty());
    assert_eq!(bench.raw(&[bench.question(directory_bytes)]).len(), 1);
    bench.cookie = good;
    assert_eq!(bench.only(get(b"k", 1)).1, b"v");
    assert_eq!(bench.count(Figure::WithoutCookie), 3);
    assert_eq!(bench.count(Figure::Short), 1);
}

#[test]
fn a_cookie_is_of_one_address_and_two_hours() {
    let mut bench = Bench::new();
    bench.only(set(b"k", b"v", 1));
    let datagram = bench.datagram(1, &[set(b"k", b"replayed", 1)]);
    let kind = |bench: &mut Bench, datagram: &[u8]| {
        let replies = bench.raw(&[datagram.to_vec()]);
        Header::decode(&replies[0]).unwrap().0.kind
    };
    // Another address sends what it has seen; the reply goes to that address, which nobody has here.
    for other in [([10, 0, 0, 2], 4_001), ([10, 0, 0, 3], 4_000)] {
        bench.network.send_as(SocketAddr::from(other), SocketAddr::from(SERVER), &datagram);
        bench.serve(false);
    }
    assert_eq!(bench.count(Figure::WithoutCookie), 2);
    assert_eq!(bench.only(get(b"k", 1)).1, b"v");
    bench.clock.advance(Duration::from_secs(3_600));
    let get = bench.datagram(1, &[get(b"k", 1)]);
    assert_eq!(kind(&mut bench, &get), Kind::Responses);
    bench.clock.advance(Duration::from_secs(3_600));
    assert_eq!(kind(&mut bench, &datagram), Kind::NoCookie);
    bench.learn();
    assert_eq!(bench.only(self::get(b"k", 1)).1, b"v");
}

#[test]
fn another_epoch_executes_nothing() {
    let mut bench = Bench::new();
    bench.only(set(b"k", b"v", 1));
    let right = bench.epoch;
    bench.epoch = right.wrapping_add(1);
    let datagram = bench.datagram(3, &[set(b"k", b"other", 1)]);
    let replies = bench.raw(&[datagram]);
    let (header, content) = Header::decode(&replies[0]).unwrap();
    assert_eq!((header.kind, header.epoch, header.sequence), (Kind::Moved, right, 3));
    assert!(content.is_empty() && replies[0].len() == HEADER_BYTES);
    bench.epoch = right;
    assert_eq!(bench.only(get(b"k", 1)).1, b"v");
    assert_eq!(bench.count(Figure::Moved), 1);
}

#[test]
fn a_wrong_datagram_is_dropped_whole() {
    let mut bench = Bench::new();
    bench.only(set(b"k", b"v", 1));
    let good = bench.datagram(1, &[set(b"k", b"other", 1), get(b"k", 2)]);
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    // The value's length of the first request, its operation, and the number of requests.
    for wrong in [changed(20, 200), changed(16, 9), changed(12, 3), changed(12, 1)] {
        assert!(bench.raw(&[wrong]).is_empty());
    }
    assert_eq!(bench.count(Figure::Malformed), 4);
    for wrong in [changed(0, 0), changed(1, 9), changed(13, Kind::Responses as u8), changed(13, 200)] {
        assert!(bench.raw(&[wrong]).is_empty());
    }
    assert_eq!(bench.count(Figure::Foreign), 4);
    for wrong in [Vec::new(), good[..15].to_vec(), good[..good.len() - 1].to_vec()] {
        assert!(bench.raw(&[wrong]).is_empty());
    }
    assert_eq!(bench.count(Figure::Short), 3);
    let mut long = good.clone();
    long.resize(DATAGRAM_BYTES_MAX + 1, 0);
    assert!(bench.raw(&[long]).is_empty());
    assert_eq!(bench.count(Figure::Malformed), 5);
    assert_eq!(bench.only(get(b"k", 1)).1, b"v");
}

#[test]
fn a_pause_drops_datagrams() {
    let mut bench = Bench::new();
    bench.network.send_as(
        SocketAddr::from(PEER),
        SocketAddr::from(SERVER),
        &bench.datagram(1, &[get(b"k", 1)]),
    );
    assert_eq!(bench.serve(true), 1);
    assert_eq!(bench.count(Figure::Paused), 1);
    assert_eq!(bench.count(Figure::Requests), 0);
}

/// Nothing is kept about peers: neither the worker nor the store has more memory after 10,000 of them.
#[test]
fn spoofed_peers_change_no_memory() {
    let mut bench = Bench::new();
    let memory = |bench: &Bench| (bench.service.memory_bytes(), bench.store.memory_bytes());
    // What is allocated once is allocated now.
    bench.only(set(b"k", b"v", 1));
    let before = memory(&bench);
    for number in 0..10_000_u32 {
        let [_, high, middle, low] = number.to_be_bytes();
        let peer = SocketAddr::from(([11, high, middle, low], 1 + number as u16));
        let datagram = match number % 3 {
            0 => bench.question(DIRECTORY_REQUEST_BYTES),
            1 => bench.datagram(number, &[set(&number.to_le_bytes(), b"value", 1)]),
            _ => vec![0xa1; 40],
        };
        bench.network.send_as(peer, SocketAddr::from(SERVER), &datagram);
        if number.is_multiple_of(100) {
            while bench.serve(false) > 0 {}
        }
    }
    while bench.serve(false) > 0 {}
    assert_eq!(memory(&bench), before);
    assert_eq!(bench.count(Figure::WithoutCookie), 3_333);
    assert_eq!(bench.count(Figure::Received), 10_002);
    assert_eq!(bench.store.database(DatabaseNumber::FIRST).approximate_len(), 1);
}
