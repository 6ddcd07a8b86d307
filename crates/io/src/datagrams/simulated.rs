//! [`SimulatedNetwork`]: a network in memory that loses, doubles and reorders datagrams.
//!
//! Time is a number of steps. A datagram arrives some steps after it was sent, or never, or twice, as the seed decides.
//! The same seed and the same calls have the same outcome.

use std::collections::BTreeMap;
use std::io::Result;
use std::net::SocketAddr;
use std::time::Duration;

use super::{Burst, Datagrams, Outgoing};
use crate::random::Random;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a network does to datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkFaults {
    /// How many of 256 datagrams are lost.
    pub loss_of_256: u64,
    /// How many of 256 arrive twice, at different times.
    pub duplication_of_256: u64,
    /// Maximum number of steps that a datagram takes; they are reordered if it is more than 0.
    pub delay_steps_max: u64,
    /// Maximum bytes of a datagram; longer ones are lost.
    pub datagram_bytes_max: usize,
}

impl Default for NetworkFaults {
    /// None.
    fn default() -> Self {
        Self { loss_of_256: 0, duplication_of_256: 0, delay_steps_max: 0, datagram_bytes_max: 65_507 }
    }
}

/// Maximum number of datagrams that wait for one address, as in the buffer of a socket.
const WAITING_MAX: usize = 4096;

/// A network in memory. Clones are the same network.
#[derive(Clone, Debug)]
pub struct SimulatedNetwork(Arc<Mutex<State>>);

/// Datagrams with their senders, by step and number.
type Arrivals = BTreeMap<(u64, u64), (SocketAddr, Vec<u8>)>;

#[derive(Debug)]
struct State {
    random: Random,
    faults: NetworkFaults,
    step: u64,
    /// Of the next datagram: what arrives in the same step keeps the order in which it was sent.
    number: u64,
    /// By receiver.
    waiting: BTreeMap<SocketAddr, Arrivals>,
    dropped: BTreeMap<SocketAddr, u64>,
}

/// An address in a simulated network.
#[derive(Debug)]
pub struct SimulatedDatagrams {
    network: SimulatedNetwork,
    address: SocketAddr,
}

impl SimulatedNetwork {
    /// A network without addresses.
    pub fn new(seed: u64, faults: NetworkFaults) -> Self {
        Self(Arc::new(Mutex::new(State {
            random: Random::new(seed),
            faults,
            step: 0,
            number: 0,
            waiting: BTreeMap::new(),
            dropped: BTreeMap::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An address in the network.
    pub fn bind(&self, address: SocketAddr) -> SimulatedDatagrams {
        self.state().waiting.entry(address).or_default();
        SimulatedDatagrams { network: self.clone(), address }
    }

    /// Changes what the network does to datagrams that are sent from now on.
    pub fn set_faults(&self, faults: NetworkFaults) {
        self.state().faults = faults;
    }

    /// One step passes.
    pub fn step(&self) {
        self.state().step += 1;
    }

    /// Number of datagrams that have not been received.
    pub fn waiting(&self) -> usize {
        self.state().waiting.values().map(BTreeMap::len).sum()
    }

    /// Sends a datagram in the name of any address, as an attacker may.
    pub fn send_as(&self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.state().send(from, to, bytes);
    }
}

impl State {
    fn send(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let faults = self.faults;
        if bytes.len() > faults.datagram_bytes_max || self.random.chance(faults.loss_of_256) {
            return;
        }
        let copies = 1 + u64::from(self.random.chance(faults.duplication_of_256));
        for _ in 0..copies {
            let arrival = self.step + self.random.below(faults.delay_steps_max + 1);
            self.number += 1;
            let Some(waiting) = self.waiting.get_mut(&to) else { return };
            if waiting.len() < WAITING_MAX {
                waiting.insert((arrival, self.number), (from, bytes.to_vec()));
            } else {
                *self.dropped.entry(to).or_default() += 1;
            }
        }
    }
}

impl Datagrams for SimulatedDatagrams {
    fn receive_burst(&mut self, burst: &mut Burst) -> Result<usize> {
        burst.clear();
        let state = &mut *self.network.state();
        let Some(waiting) = state.waiting.get_mut(&self.address) else { return Ok(0) };
        while let Some(slot) = burst.next_slot()
            && let Some(first) = waiting.first_entry()
            && first.key().0 <= state.step
        {
            let (peer, bytes) = first.remove();
            slot[..bytes.len()].copy_from_slice(&bytes);
            burst.push(Some(peer), bytes.len(), bytes.len());
        }
        Ok(burst.len())
    }

    fn send_burst(&mut self, outgoing: &mut Outgoing) -> Result<usize> {
        let state = &mut *self.network.state();
        for (peer, bytes) in outgoing.datagrams() {
            state.send(self.address, peer, bytes);
        }
        let sent = outgoing.len();
        outgoing.clear();
        Ok(sent)
    }

    fn wait(&mut self, _timeout: Duration) -> Result<()> {
        self.network.step();
        Ok(())
    }

    fn dropped(&self) -> u64 {
        self.network.state().dropped.get(&self.address).copied().unwrap_or(0)
    }

    fn local_address(&self) -> SocketAddr {
        self.address
    }
}
