//! Gets as a stream: one thread, with as many reads in flight as other phases have threads.

use std::cell::RefCell;
use std::time::Instant;

use alluvium::ReadWait;

use super::StoreBench;
use super::drive::{Drive, Outcome, Step};
use crate::error::BenchError;
use crate::measurement::Measurement;

/// Items looked up per call.
const CALL: u64 = 1 << 16;

/// A key whose lookup is in progress.
struct Wanted {
    item: u64,
    version: u8,
    key: Vec<u8>,
    since: Instant,
}

impl AsRef<[u8]> for Wanted {
    fn as_ref(&self) -> &[u8] {
        &self.key
    }
}

impl StoreBench {
    /// Gets uniformly chosen items by [`alluvium::Keyspace::get_each`]. A latency is the time from taking a key to its
    /// answer.
    pub(super) fn stream(&self) -> Result<Measurement, BenchError> {
        // Pipelines always sleep.
        self.beside_raw_reads("stream", &[ReadWait::Sleep], |operations| self.stream_part(operations))
    }

    fn stream_part(&self, operations: u64) -> Result<Outcome, BenchError> {
        let drive = Drive { threads: 1, ..self.reading("stream", operations) };
        self.drive(&drive, |worker| {
            let count = CALL.min(worker.quota - worker.done);
            let spare: RefCell<Vec<Vec<u8>>> = RefCell::default();
            let mut failure = None;
            let (random, gets) = worker.random_and_gets();
            let keys = (0..count).map(|_| {
                let item = random.below(self.workload.live_items());
                let mut key = spare.borrow_mut().pop().unwrap_or_default();
                self.workload.key(item, &mut key);
                Wanted { item, version: self.workload.version(item), key, since: Instant::now() }
            });
            self.keyspace.get_each(keys, self.in_flight(), |wanted, value| {
                gets.record(wanted.since.elapsed());
                if let Err(error) = self.workload.check(wanted.item, wanted.version, value) {
                    failure.get_or_insert(error);
                }
                spare.borrow_mut().push(wanted.key);
            })?;
            failure.map_or(Ok(Step::Recorded(count)), Err)
        })
    }
}
