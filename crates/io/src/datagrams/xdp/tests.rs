//! Frames between two ends of a virtual wire, in a network of the test's own.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::process::Command;
use std::time::{Duration, Instant};

use super::super::frame::fuzz_frame_samples;
use super::super::{Burst, Datagrams, Frame, Link, NoDatagram, Outgoing, Unfinished};
use super::system_calls::{self, Place};
use super::*;

/// Says that the process has a network of its own.
const OWN_NETWORK: &str = "ALLUVIUM_TEST_OWN_NETWORK";
const ADDRESSES: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// Whether this process has a network of its own. Otherwise the test of this name runs again in a process that has one,
/// if the system permits that.
fn has_own_network(test: &str) -> bool {
    if std::env::var_os(OWN_NETWORK).is_some() {
        return true;
    }
    let unshare = |program: &str, arguments: &[&str]| {
        Command::new("unshare").arg("--net").arg(program).args(arguments).env(OWN_NETWORK, "1").output()
    };
    let may = unshare("ip", &["link", "add", "one", "type", "veth", "peer", "name", "two"]);
    if !may.as_ref().is_ok_and(|output| output.status.success()) {
        println!("skipped: no network of its own with a virtual wire: {may:?}");
        return false;
    }
    let program = std::env::current_exe().unwrap();
    let name = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
    let output = unshare(program.to_str().unwrap(), &[&name, "--exact", "--nocapture"]).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"));
    false
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A wire between the interfaces `one` and `two`, each with two queues and packets of this length.
fn lay_wire(packet_bytes_max: usize) {
    let mtu = format!("mtu {packet_bytes_max} numrxqueues 2 numtxqueues 2");
    let [one, two] = ADDRESSES.map(|address| address.map(|byte| format!("{byte:02x}")).join(":"));
    ip(&format!("link add one address {one} {mtu} type veth peer name two address {two} {mtu}"));
    ip("link set lo up");
    for (number, name) in ["one", "two"].iter().enumerate() {
        ip(&format!("addr add 10.77.0.{}/24 dev {name}", number + 1));
        ip(&format!("addr add fd77::{}/64 dev {name} nodad", number + 1));
        ip(&format!("link set {name} up"));
    }
}

/// A socket at each end, which have found each other; `None` if the system does not permit it.
fn ends(addresses: [&str; 2]) -> Option<([InterfaceDatagrams; 2], XdpQueues)> {
    let mut ends = addresses.map(|address| {
        let address = SocketAddr::new(address.parse().unwrap(), 0);
        InterfaceDatagrams::bind(address).unwrap()
    });
    let mut found = None;
    for (end, name) in ends.iter_mut().zip(["one", "two"]) {
        match receive_frames(std::slice::from_mut(end), name) {
            Ok(queues) => found = Some(queues),
            Err(XdpError::System { step, error })
                if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::Unsupported) =>
            {
                println!("skipped: cannot {step}: {error}");
                return None;
            }
            Err(error) => panic!("{error}"),
        }
    }
    meet(&mut ends);
    Some((ends, found?))
}

/// As if both had just received a frame of each other.
fn meet(ends: &mut [InterfaceDatagrams; 2]) {
    let [one, two] = [0, 1].map(|end| ends[end].local_address());
    let way = Link { from: ADDRESSES[0], to: ADDRESSES[1] };
    ends[0].queue().unwrap().note(two, way);
    ends[1].queue().unwrap().note(one, way.reversed());
}

/// Sends datagrams of these lengths from the first end, and compares what the second one receives.
fn exchange(ends: &mut [InterfaceDatagrams; 2], lens: &[usize]) {
    let [one, two] = ends;
    let (peer, mut outgoing) = (two.local_address(), Outgoing::new(1 << 16));
    let mut sent = Vec::new();
    for (number, len) in lens.iter().enumerate() {
        let room = outgoing.room(*len).expect("room");
        room.fill(number as u8);
        sent.push(room.to_vec());
        outgoing.commit(peer, *len);
    }
    assert_eq!(one.send_burst(&mut outgoing).unwrap(), lens.len());
    let (mut burst, mut received) = (Burst::new(28), Vec::new());
    let end = Instant::now() + Duration::from_secs(10);
    while received.len() < sent.len() && Instant::now() < end {
        two.wait(Duration::from_secs(1)).unwrap();
        two.receive_burst(&mut burst).unwrap();
        assert!(burst.datagrams().all(|(peer, _)| peer == one.local_address()));
        received.extend(burst.datagrams().map(|(_, bytes)| bytes.to_vec()));
    }
    // The two ways do not keep the order of each other.
    received.sort();
    sent.sort();
    assert!(received == sent, "{} of {} datagrams, or others", received.len(), sent.len());
}

/// Frames in both directions, and what is too long for them by the sockets.
fn exchange_all(ends: &mut [InterfaceDatagrams; 2]) {
    let lens: Vec<usize> = [64; 70].into_iter().chain([8, 64, 64, 40, 1452, 1452, 3, 0, 0]).collect();
    let mut in_frames = 0;
    for _ in 0..20 {
        exchange(ends, &lens);
        // The last burst of the second end has told it the way back; the first end knows none after receiving nothing.
        in_frames += lens.len() as u64;
        assert_eq!((ends[0].frames().sent, ends[1].frames().received), (in_frames, in_frames));
        ends.reverse();
        meet(ends);
        exchange(ends, &lens);
        ends.reverse();
        meet(ends);
        assert_eq!(ends[1].frames().sent, in_frames);
    }
    exchange(ends, &[20, 1_800, 9_000]);
    assert_eq!(ends[0].frames().sent, in_frames + 1);
    let [one, two] = [ends[0].frames(), ends[1].frames()];
    assert_eq!(one.refused + one.dropped + two.refused + two.dropped, 0);
}

fn run(test: &str, addresses: [&str; 2], packet_bytes_max: usize, is_in_driver: bool) {
    if !has_own_network(test) {
        return;
    }
    lay_wire(packet_bytes_max);
    let Some((mut ends, queues)) = ends(addresses) else { return };
    assert_eq!(queues, XdpQueues { queues: 1, is_in_driver, is_zero_copy: false });
    exchange_all(&mut ends);
    drop(ends);
    let shown = Command::new("ip").args(["link", "show"]).output().unwrap().stdout;
    assert!(!String::from_utf8_lossy(&shown).contains("xdp"), "the program is gone");
}

const V4: [&str; 2] = ["10.77.0.1", "10.77.0.2"];

#[test]
fn frames_arrive_by_the_driver() {
    run("frames_arrive_by_the_driver", V4, 1500, true);
}

#[test]
fn frames_of_ipv6_arrive() {
    run("frames_of_ipv6_arrive", ["fd77::1", "fd77::2"], 1500, true);
}

/// The driver has no place for programs where packets are long.
#[test]
fn frames_arrive_by_the_stack() {
    run("frames_arrive_by_the_stack", V4, 9000, false);
}

/// The frame from the first end to the second one.
fn frame(ends: &[InterfaceDatagrams; 2], content: &[u8]) -> Vec<u8> {
    let [from, to] = [0, 1].map(|end| ends[end].local_address());
    let link = Link { from: ADDRESSES[0], to: ADDRESSES[1] };
    let mut bytes = vec![0; 2_048];
    let len = Frame { link, from, to, content }.write(&mut bytes).unwrap();
    bytes.truncate(len);
    bytes
}

/// Frames that the program takes and that are no datagrams are refused, and disturb nothing.
#[test]
fn broken_frames_are_refused() {
    if !has_own_network("broken_frames_are_refused") {
        return;
    }
    lay_wire(1500);
    let Some((mut ends, _)) = ends(V4) else { return };
    let whole = frame(&ends, b"content");
    let mut checksum = whole.clone();
    checksum[45] ^= 1;
    let mut header = whole.clone();
    header[22] ^= 1;
    let mut longer = whole.clone();
    longer[39] += 1;
    let short = whole[..whole.len() - 1].to_vec();
    for (number, bytes) in [checksum, header, longer, short].iter().enumerate() {
        ends[0].queue().unwrap().send_bytes(bytes);
        exchange(&mut ends, &[5]);
        let counts = ends[1].frames();
        assert_eq!((counts.received, counts.refused), (number as u64 + 1, number as u64 + 1));
        meet(&mut ends);
    }
}

/// Splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as usize % bound
    }
}

/// The kernel runs the program on changed frames: it takes all that are datagrams for the address, and none that the
/// parser calls foreign.
#[test]
fn the_program_agrees_with_the_parser() {
    if !has_own_network("the_program_agrees_with_the_parser") {
        return;
    }
    lay_wire(1500);
    for addresses in [V4, ["fd77::1", "fd77::2"]] {
        let Some((mut ends, _)) = ends(addresses) else { return };
        let address = ends[1].local_address();
        let mut samples = fuzz_frame_samples();
        samples.extend([0, 7, 1_452, 1_700, 1_750, 1_751].map(|len| frame(&ends, &vec![1; len])));
        let queue = ends[1].queue().unwrap();
        let [driver, stack] = [Place::Driver, Place::Stack]
            .map(|place| queue.interface().program(address, place).expect("the kernel accepts the program"));
        let (mut random, mut taken) = (Random(1), [0; 2]);
        for number in 0..20_000 {
            let mut bytes = samples[number % samples.len()].clone();
            if address.is_ipv4() && random.below(8) == 0 {
                // Without a checksum; and then with an unfinished one.
                bytes[40..42].fill(0);
            }
            for _ in 0..random.below(3) {
                // Most places are those of headers.
                let place = random.below(bytes.len().min(64));
                bytes[place] =
                    [random.below(256) as u8, bytes[place] ^ 1 << random.below(8)][random.below(2)];
            }
            if random.below(8) == 0 {
                bytes.truncate(14 + random.below(bytes.len() - 13));
            }
            let is_for_us = |read: &Result<Frame<'_>, NoDatagram>| {
                let fits = bytes.len() <= FRAME_BYTES_MAX;
                read.is_ok_and(|frame| {
                    fits && (frame.to.ip(), frame.to.port()) == (address.ip(), address.port())
                })
            };
            let lenient = Frame::parse(&bytes, Unfinished::Accept);
            let is_taken = system_calls::run(driver.as_fd(), &bytes).unwrap() == 4;
            assert!(!is_for_us(&lenient) || is_taken, "{bytes:?}");
            assert!(!is_taken || lenient != Err(NoDatagram::Foreign), "{bytes:?}");
            let strict = Frame::parse(&bytes, Unfinished::Refuse);
            let is_taken_strictly = system_calls::run(stack.as_fd(), &bytes).unwrap() == 4;
            assert!(!is_for_us(&strict) || is_taken_strictly, "{bytes:?}");
            assert!(!is_taken_strictly || is_taken, "{bytes:?}");
            // What is unfinished is never taken where it may be several datagrams.
            assert!(!is_taken_strictly || strict == lenient, "{bytes:?}");
            taken[0] += usize::from(is_taken);
            taken[1] += usize::from(is_taken_strictly);
        }
        assert!(taken.iter().all(|taken| (2_000..18_000).contains(taken)), "{taken:?}");
        // The sum of addresses and length alone is a checksum of somebody who has not finished it.
        for len in [7, 1_000] {
            let mut bytes = frame(&ends, &vec![1; len]);
            let at = bytes.len() - len - 2;
            let is_unfinished = |bytes: &[u8]| {
                Frame::parse(bytes, Unfinished::Accept).is_ok()
                    && Frame::parse(bytes, Unfinished::Refuse).is_err()
            };
            let found = (1..=u16::MAX).find(|checksum| {
                bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
                is_unfinished(&bytes)
            });
            assert!(found.is_some());
            assert_eq!(system_calls::run(driver.as_fd(), &bytes).unwrap(), 4);
            assert_eq!(system_calls::run(stack.as_fd(), &bytes).unwrap(), 2);
        }
    }
}

#[test]
fn addresses_without_an_interface_are_refused() {
    for address in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
        let Ok(socket) = InterfaceDatagrams::bind(address.parse().unwrap()) else { continue };
        let refused = receive_frames(&mut [socket], "lo").unwrap_err();
        assert!(matches!(refused, XdpError::Address(_)), "{refused}");
    }
    assert_eq!(receive_frames(&mut [], "lo").unwrap().queues, 0);
}

#[test]
fn a_wrong_interface_leaves_the_sockets_as_they_are() {
    if !has_own_network("a_wrong_interface_leaves_the_sockets_as_they_are") {
        return;
    }
    lay_wire(1500);
    let address = "10.77.0.1:0".parse().unwrap();
    let mut sockets =
        [InterfaceDatagrams::bind(address).unwrap(), InterfaceDatagrams::bind(address).unwrap()];
    let refused = receive_frames(&mut sockets, "none").unwrap_err();
    assert!(refused.to_string().contains("find the interface"), "{refused}");
    // Of three sockets, two have a queue.
    let mut three = [0; 3].map(|_| InterfaceDatagrams::bind(address).unwrap());
    let Ok(queues) = receive_frames(&mut three, "one") else { return };
    assert_eq!(queues.queues, 2);
    // An interface has one program.
    let refused = receive_frames(&mut sockets, "one").unwrap_err();
    assert!(refused.to_string().contains("put a program"), "{refused}");
    drop(three);
    assert_eq!(receive_frames(&mut sockets, "one").unwrap().queues, 2);
}
