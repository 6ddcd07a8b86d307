//! Requests at a worker that does not own their keys.

use std::cell::RefCell;
use std::net::SocketAddr;

use alluvium_io::SimulatedClock;
use alluvium_io::datagrams::{
    Burst, Datagrams as _, NetworkFaults, Outgoing, SimulatedDatagrams, SimulatedNetwork,
};
use alluvium_protocol::datagram::{
    Content, DATAGRAM_BYTES_MAX, DIRECTORY_REQUEST_BYTES, Header, Kind, Mode, Operation, Padding, Request,
    Status, Writer,
};

use super::counters::Figure;
use super::simulated_workers::{Workers, server};
use super::{Handing, Way};

const WORKERS: u16 = 3;

/// Workers, and a peer that sends to any of them.
struct Bench {
    workers: Workers,
    peer: SimulatedDatagrams,
    epoch: u16,
    cookie: u32,
    stored: Vec<Vec<u8>>,
}

/// A reply: the number of the worker, its kind, and status and opaque number of each response.
type Reply = (u16, Kind, Vec<(Status, u32)>);

fn set(key: &[u8], opaque: u32) -> Request<'_> {
    Request { operation: Operation::Set, key, value: b"value", opaque, expiry_s: 0 }
}

fn get(key: &[u8], opaque: u32) -> Request<'_> {
    Request { operation: Operation::Get, value: b"", ..set(key, opaque) }
}

impl Bench {
    fn new(mode: Mode, hands_over: bool) -> Self {
        let (network, clock) =
            (SimulatedNetwork::new(1, NetworkFaults::default()), SimulatedClock::default());
        let workers = Workers::new(&network, &clock, WORKERS, Way { mode, hands_over });
        let peer = network.bind(SocketAddr::from(([10, 0, 0, 2], 7)));
        let mut bench = Self { workers, peer, epoch: 0, cookie: 0, stored: Vec::new() };
        bench.learn();
        bench
    }

    fn learn(&mut self) {
        let mut buffer = [0; DIRECTORY_REQUEST_BYTES];
        let header = Header { kind: Kind::AskDirectory, epoch: 0, cookie: 0, sequence: 1, count: 0 };
        Writer::new(&mut buffer).finish(header, Padding::To(DIRECTORY_REQUEST_BYTES));
        self.send(0, &buffer);
        self.serve();
        let mut burst = Burst::new(1);
        assert_eq!(self.peer.receive_burst(&mut burst).unwrap(), 1);
        let (_, bytes) = burst.datagrams().next().unwrap();
        let (header, _) = Header::decode(bytes).unwrap();
        (self.epoch, self.cookie) = (header.epoch, header.cookie);
    }

    fn send(&mut self, worker: u16, datagram: &[u8]) {
        let mut outgoing = Outgoing::new(2 * DATAGRAM_BYTES_MAX);
        outgoing.room(datagram.len()).unwrap().copy_from_slice(datagram);
        let address = SocketAddr::new(server().ip(), server().port() + worker);
        outgoing.commit(address, datagram.len());
        self.peer.send_burst(&mut outgoing).unwrap();
    }

    fn ask(&mut self, worker: u16, requests: &[Request<'_>]) {
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        let mut writer = Writer::new(&mut buffer);
        assert!(requests.iter().all(|request| writer.push_request(request)));
        let (epoch, cookie) = (self.epoch, self.cookie);
        let header = Header { kind: Kind::Requests, epoch, cookie, sequence: 5, count: 0 };
        let len = writer.finish(header, Padding::None);
        self.send(worker, &buffer[..len]);
    }

    /// Lets one worker serve what has come.
    fn serve_one(&mut self, worker: usize) {
        let Self { workers, stored, .. } = self;
        workers.serve(|number| number == worker, &mut |key, _| stored.push(key.to_vec()));
    }

    /// Lets all workers serve until nothing is left.
    fn serve(&mut self) {
        for _ in 0..2 {
            (0..usize::from(WORKERS)).for_each(|worker| self.serve_one(worker));
        }
    }

    fn replies(&mut self) -> Vec<Reply> {
        let (mut burst, mut replies) = (Burst::new(32), Vec::new());
        while self.peer.receive_burst(&mut burst).unwrap() > 0 {
            for (worker, bytes) in burst.datagrams() {
                let (header, content) = Header::decode(bytes).unwrap();
                let responses = Content::responses(content, header.count).unwrap();
                let responses = responses.map(|response| (response.status, response.opaque)).collect();
                assert_eq!(header.sequence, 5);
                replies.push((worker.port() - server().port(), header.kind, responses));
            }
        }
        replies
    }

    /// A key of each worker.
    fn keys(&self) -> Vec<[u8; 4]> {
        let key_of = |worker| {
            let mut keys = (0_u32..).map(u32::to_le_bytes);
            keys.find(|key| self.workers.owner_of(&set(key, 0)).is_none_or(|owner| owner == worker)).unwrap()
        };
        (0..usize::from(WORKERS)).map(key_of).collect()
    }

    fn count(&self, figure: Figure) -> u64 {
        self.workers.counters.iter().map(|counters| counters.get(figure)).sum()
    }
}

#[test]
fn a_request_at_the_wrong_worker_moves_its_whole_datagram() {
    for mode in [Mode::Exclusive, Mode::ConcurrentReads] {
        let mut bench = Bench::new(mode, false);
        let keys = bench.keys();
        bench.ask(0, &[set(&keys[0], 1), set(&keys[1], 2)]);
        bench.serve();
        assert_eq!(bench.replies(), [(0, Kind::Moved, vec![])]);
        assert!(bench.stored.is_empty() && bench.count(Figure::Misdirected) == 1);
        bench.ask(0, &[set(&keys[0], 1)]);
        bench.ask(1, &[set(&keys[1], 2)]);
        bench.serve();
        let done = |worker, opaque| (worker, Kind::Responses, vec![(Status::Done, opaque)]);
        assert_eq!(bench.replies(), [done(0, 1), done(1, 2)]);
        // Reads of all keys, at one worker.
        bench.ask(2, &[get(&keys[0], 3), get(&keys[1], 4)]);
        bench.serve();
        let replies = bench.replies();
        match mode {
            Mode::Exclusive => assert_eq!(replies, [(2, Kind::Moved, vec![])]),
            _ => assert_eq!(replies[0].2, [(Status::Done, 3), (Status::Done, 4)]),
        }
    }
}

#[test]
fn each_owner_answers_its_requests() {
    let mut bench = Bench::new(Mode::Exclusive, true);
    let keys = bench.keys();
    let requests = [set(&keys[0], 1), set(&keys[1], 2), set(&keys[2], 3), get(&keys[1], 4)];
    bench.ask(0, &requests);
    bench.serve();
    let done = |opaque| (Status::Done, opaque);
    assert_eq!(
        bench.replies(),
        [
            (0, Kind::Responses, vec![done(1)]),
            (1, Kind::Responses, vec![done(2), done(4)]),
            (2, Kind::Responses, vec![done(3)]),
        ]
    );
    assert_eq!(bench.stored, keys);
    assert_eq!((bench.count(Figure::HandedOver), bench.count(Figure::Requests)), (3, 4));
    // Reads are handed over only where the owner alone reads.
    for (mode, workers) in [(Mode::ConcurrentReads, 1), (Mode::Exclusive, 3), (Mode::Shared, 1)] {
        let mut bench = Bench::new(mode, true);
        let keys = bench.keys();
        bench.ask(0, &keys.iter().map(|key| get(key, 0)).collect::<Vec<_>>());
        bench.serve();
        assert_eq!(bench.replies().len(), workers, "{mode:?}");
    }
}

/// What was handed over before the partitions moved is not executed after it.
#[test]
fn an_epoch_that_ends_in_a_ring_executes_nothing() {
    let mut bench = Bench::new(Mode::Exclusive, true);
    let keys = bench.keys();
    bench.ask(0, &[set(&keys[0], 1), set(&keys[1], 2)]);
    bench.serve_one(0);
    bench.workers.move_partitions();
    bench.serve();
    let replies = bench.replies();
    assert_eq!(replies, [(0, Kind::Responses, vec![(Status::Done, 1)]), (1, Kind::Moved, vec![])]);
    assert_eq!(bench.stored, [keys[0]]);
    assert_eq!(bench.count(Figure::Moved), 1);
}

/// A worker that does not come to its rings costs others their datagrams, but no memory and no half ones.
#[test]
fn full_rings_drop_whole_datagrams() {
    let mut bench = Bench::new(Mode::Exclusive, true);
    let keys = bench.keys();
    let memory = bench.workers.services[1].memory_bytes();
    let mut sent = 0;
    while bench.count(Figure::NoRing) == 0 {
        bench.ask(0, &[set(&keys[0], 1), set(&keys[1], 2), set(&keys[2], 3)]);
        bench.serve_one(0);
        sent += 1;
        assert!(sent < 10_000, "rings have a bound");
    }
    let executed = bench.stored.len();
    assert_eq!(executed, sent - 1, "the last one was dropped whole");
    bench.serve();
    while bench.workers.services[1].may_have_more() || bench.workers.services[2].may_have_more() {
        bench.serve();
    }
    assert_eq!(bench.stored.len(), 3 * executed);
    assert_eq!(bench.workers.services[1].memory_bytes(), memory);
    assert!(memory < 3 << 20, "{memory} bytes");
}

#[test]
fn the_rings_of_many_workers_take_no_more_than_those_of_a_few() {
    for workers in [1, 2, 8, 64] {
        let ends = Handing::between(workers);
        assert!(ends.iter().all(|end| end.memory_bytes() <= 1 << 20), "{workers} workers");
    }
}

#[test]
fn a_worker_that_sleeps_is_woken_once() {
    let mut bench = Bench::new(Mode::Exclusive, true);
    let keys = bench.keys();
    let woken = RefCell::new(Vec::new());
    let hand_over = |bench: &mut Bench| {
        bench.ask(0, &[set(&keys[1], 2)]);
        bench.serve_one(0);
        bench.workers.services[0].wake(|number| woken.borrow_mut().push(number));
    };
    // It is awake.
    hand_over(&mut bench);
    assert!(woken.borrow().is_empty());
    assert!(!bench.workers.services[1].may_sleep(), "there is something for it");
    bench.serve();
    assert!(bench.workers.services[1].may_sleep());
    hand_over(&mut bench);
    hand_over(&mut bench);
    assert_eq!(*woken.borrow(), [1]);
    bench.serve();
    assert_eq!(bench.stored.len(), 3);
}
