//! [`Workers`]: workers over one cache in a simulated network, for tests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use alluvium_io::SimulatedClock;
use alluvium_io::datagrams::{NetworkFaults, SimulatedDatagrams, SimulatedNetwork};
use alluvium_protocol::datagram::{Mode, Request};

use super::counters::Counters;
use super::{Directing, Handing, Items, Service, Way};
use crate::store::{DatabaseNumber, Databases as _, Store as _};
use crate::{CacheSettings, CacheStore};

pub(super) const STEP: Duration = Duration::from_millis(1);
pub(super) const DELAY_STEPS_MAX: u64 = 30;
pub(super) const FAULTS: NetworkFaults = NetworkFaults {
    loss_of_256: 26,
    duplication_of_256: 26,
    delay_steps_max: DELAY_STEPS_MAX,
    datagram_bytes_max: 1452,
};

const fn way(mode: Mode, hands_over: bool) -> Way {
    Way { mode, hands_over }
}

/// All ways by which requests reach the worker that executes them.
pub(super) const WAYS: [Way; 6] = [
    way(Mode::Shared, false),
    way(Mode::ConcurrentReads, false),
    way(Mode::Exclusive, false),
    way(Mode::Shared, true),
    way(Mode::ConcurrentReads, true),
    way(Mode::Exclusive, true),
];

/// SplitMix64.
pub(super) struct Random(pub u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

pub(super) type Value = Option<Vec<u8>>;

/// The address of the first worker.
pub(super) fn server() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 100))
}

/// Workers over one cache.
pub(super) struct Workers {
    pub(super) services: Vec<Service<SimulatedDatagrams>>,
    pub(super) counters: Vec<Counters>,
    pub(super) store: CacheStore,
    directing: Arc<Directing>,
    moves: usize,
}

impl Workers {
    pub(super) fn new(network: &SimulatedNetwork, clock: &SimulatedClock, count: u16, way: Way) -> Self {
        let addresses: Vec<SocketAddr> =
            (0..count).map(|number| SocketAddr::new(server().ip(), server().port() + number)).collect();
        // Two parts for each of two workers.
        let settings = CacheSettings { is_directed: true, ..CacheSettings::new(128 << 20) };
        let store = CacheStore::new(settings, usize::from(count)).unwrap();
        let (clock, seed) = (Arc::new(clock.clone()), store.direction_seed());
        let directing = Arc::new(Directing::new(&addresses, way, clock, seed));
        let ends = Handing::between(addresses.len()).into_iter().enumerate();
        let service = |((number, handing), address): ((usize, Handing), &SocketAddr)| {
            let handing = way.hands_over.then_some(handing);
            Service::new(network.bind(*address), Arc::clone(&directing), number, handing)
        };
        Self {
            services: ends.zip(&addresses).map(service).collect(),
            counters: addresses.iter().map(|_| Counters::default()).collect(),
            store,
            directing,
            moves: 0,
        }
    }

    /// The workers get another directory, in which the partitions are elsewhere.
    pub(super) fn move_partitions(&mut self) {
        self.moves += 1;
        self.directing = Arc::new(self.directing.redirected(self.moves));
        let directing = &self.directing;
        self.services.iter_mut().for_each(|service| service.direct(Arc::clone(directing)));
    }

    /// The number of the only worker that may execute a request.
    pub(super) fn owner_of(&self, request: &Request<'_>) -> Option<usize> {
        self.directing.owner_of(request)
    }

    /// Lets those workers that have a processor serve what has come, and calls `stored` with what a key has after each
    /// write.
    pub(super) fn serve(
        &mut self,
        mut has_processor: impl FnMut(usize) -> bool,
        stored: &mut dyn FnMut(&[u8], Value),
    ) {
        let Self { services, counters, store, .. } = self;
        let database = store.database(DatabaseNumber::FIRST);
        let mut changed = |key: &[u8], _| {
            let mut value = None;
            database.get_any(key, &mut |found| value = Some(found.value.to_vec())).unwrap();
            stored(key, value);
        };
        for (number, (service, counters)) in services.iter_mut().zip(counters).enumerate() {
            let mut items = Items { database, changed: &mut changed };
            while has_processor(number) && service.serve(&mut items, counters, false).unwrap().0 > 0 {}
        }
    }
}
