use std::net::{Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use super::*;

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Adds datagrams of these lengths, with different bytes.
fn fill(outgoing: &mut Outgoing, peer: SocketAddr, lens: impl IntoIterator<Item = usize>) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    for (number, len) in lens.into_iter().enumerate() {
        let room = outgoing.room(len).expect("room");
        room.fill(number as u8);
        sent.push(room.to_vec());
        outgoing.commit(peer, len);
    }
    sent
}

/// All datagrams that come until there are `count`.
fn receive(datagrams: &mut impl Datagrams, count: usize) -> Vec<Vec<u8>> {
    let (mut burst, mut received) = (Burst::new(4), Vec::new());
    let end = Instant::now() + Duration::from_secs(10);
    while received.len() < count && Instant::now() < end {
        let came = datagrams.receive_burst(&mut burst).unwrap();
        assert_eq!(came, burst.datagrams().count());
        received.extend(burst.datagrams().map(|(_, bytes)| bytes.to_vec()));
    }
    received
}

/// What one sends, the other receives, in trains of all kinds.
fn exchange(one: &mut impl Datagrams, other: &mut impl Datagrams) {
    let lens: Vec<usize> = [64; 70].into_iter().chain([8, 64, 64, 40, 1452, 1452, 3, 0, 0, 9_000]).collect();
    let mut outgoing = Outgoing::new(1 << 16);
    let sent = fill(&mut outgoing, other.local_address(), lens.iter().copied());
    assert_eq!(outgoing.len(), lens.len());
    assert_eq!(one.send_burst(&mut outgoing).unwrap(), lens.len());
    assert!(outgoing.is_empty());
    assert_eq!(receive(other, lens.len()), sent);
}

#[test]
fn bursts_arrive_whole() {
    let (mut one, mut other) =
        (SystemDatagrams::bind(loopback()).unwrap(), SystemDatagrams::bind(loopback()).unwrap());
    exchange(&mut one, &mut other);
    exchange(&mut other, &mut one);
    assert_eq!(one.dropped() + other.dropped(), 0);
}

#[test]
fn bursts_arrive_whole_from_and_at_plain_sockets() {
    let (mut one, mut other) =
        (PlainDatagrams::bind(loopback()).unwrap(), SystemDatagrams::bind(loopback()).unwrap());
    exchange(&mut one, &mut other);
    exchange(&mut other, &mut one);
}

#[test]
fn bursts_have_addresses_of_both_families() {
    let ends = [loopback(), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))];
    for address in ends {
        let Ok(mut one) = SystemDatagrams::bind(address) else { continue };
        let mut other = SystemDatagrams::bind(address).unwrap();
        let mut outgoing = Outgoing::new(1000);
        fill(&mut outgoing, other.local_address(), [8, 8, 8]);
        assert_eq!(one.send_burst(&mut outgoing).unwrap(), 3);
        let mut burst = Burst::new(1);
        let end = Instant::now() + Duration::from_secs(10);
        while other.receive_burst(&mut burst).unwrap() == 0 && Instant::now() < end {}
        assert!(burst.datagrams().all(|(peer, bytes)| peer == one.local_address() && bytes.len() == 8));
        assert!(!burst.is_empty());
    }
}

#[test]
fn the_system_says_how_much_it_dropped() {
    let (mut one, mut other) =
        (SystemDatagrams::bind(loopback()).unwrap(), SystemDatagrams::bind(loopback()).unwrap());
    let mut sent = 0;
    let mut outgoing = Outgoing::new(1 << 17);
    for _ in 0..400 {
        fill(&mut outgoing, other.local_address(), [1400; 40]);
        sent += one.send_burst(&mut outgoing).unwrap();
    }
    let mut burst = Burst::new(32);
    let mut received = 0;
    while let came @ 1.. = other.receive_burst(&mut burst).unwrap() {
        received += came;
    }
    // What comes after the losses says how many there were.
    fill(&mut outgoing, other.local_address(), [8]);
    one.send_burst(&mut outgoing).unwrap();
    assert_eq!(receive(&mut other, 1).len(), 1);
    assert!(received < sent, "{received} of {sent}");
    if cfg!(target_os = "linux") {
        assert!(other.dropped() > 0);
    }
}

#[test]
fn a_peer_that_is_not_there_disturbs_nobody() {
    let (mut one, mut other) =
        (SystemDatagrams::bind(loopback()).unwrap(), SystemDatagrams::bind(loopback()).unwrap());
    let mut outgoing = Outgoing::new(1000);
    let nobody: [SocketAddr; 2] =
        [SocketAddr::from(([127, 0, 0, 1], 9)), SocketAddr::from(([0, 0, 0, 0], 0))];
    for peer in nobody {
        fill(&mut outgoing, peer, [8, 8]);
    }
    let sent = fill(&mut outgoing, other.local_address(), [16]);
    one.send_burst(&mut outgoing).unwrap();
    assert_eq!(receive(&mut other, 1), sent);
    assert_eq!(one.receive_burst(&mut Burst::new(1)).unwrap(), 0);
}

#[test]
fn trains_are_of_one_length_and_one_peer() {
    let (one, other) = (SocketAddr::from(([127, 0, 0, 1], 1)), SocketAddr::from(([127, 0, 0, 1], 2)));
    let mut outgoing = Outgoing::new(1 << 18);
    fill(&mut outgoing, one, [64, 64, 32]);
    fill(&mut outgoing, one, [64, 72]);
    fill(&mut outgoing, other, [64; 65]);
    let lens: Vec<usize> = outgoing.trains().iter().map(|train| train.count).collect();
    assert_eq!(lens, [3, 1, 1, 64, 1]);
    assert!(outgoing.room(1 << 18).is_none());
}

#[test]
fn a_simulated_network_loses_doubles_and_reorders() {
    let faults = NetworkFaults {
        loss_of_256: 26,
        duplication_of_256: 26,
        delay_steps_max: 5,
        datagram_bytes_max: 100,
    };
    let run = |seed| {
        let network = SimulatedNetwork::new(seed, faults);
        let (one, other) = (SocketAddr::from(([10, 0, 0, 1], 1)), SocketAddr::from(([10, 0, 0, 2], 2)));
        let (mut sender, mut receiver) = (network.bind(one), network.bind(other));
        let (mut outgoing, mut burst, mut received) = (Outgoing::new(1000), Burst::new(4), Vec::new());
        for number in 0..=250_u8 {
            outgoing.room(101).unwrap()[0] = number;
            outgoing.commit(other, 1);
            outgoing.commit(other, 101);
            sender.send_burst(&mut outgoing).unwrap();
            network.step();
            while receiver.receive_burst(&mut burst).unwrap() > 0 {
                received.extend(burst.datagrams().map(|(_, bytes)| bytes[0]));
            }
        }
        received
    };
    let received = run(1);
    assert_eq!(received, run(1));
    assert_ne!(received, run(2));
    let mut distinct = received.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert!(distinct.len() < 245 && distinct.len() < received.len() && !received.is_sorted());
}

proptest::proptest! {
    #[test]
    fn a_burst_keeps_what_is_added(
        added in proptest::collection::vec((0..3_u16, 0..5_usize, 0..3_usize), 0..300),
        slots in 1..6_usize,
    ) {
        let mut burst = Burst::new(slots);
        let mut expected: Vec<(SocketAddr, Vec<u8>)> = Vec::new();
        for (number, (peer, len, times)) in added.into_iter().enumerate() {
            let peer = SocketAddr::from(([10, 0, 0, 1], peer));
            for _ in 0..times * 20 {
                let datagram = vec![number as u8; [0, 1, 60, 64, 1_400][len]];
                if !burst.add(peer, &datagram) {
                    assert!(burst.is_full());
                    break;
                }
                expected.push((peer, datagram));
            }
        }
        let found: Vec<_> = burst.datagrams().map(|(peer, bytes)| (peer, bytes.to_vec())).collect();
        assert_eq!(burst.len(), found.len());
        assert_eq!(found, expected);
    }
}
