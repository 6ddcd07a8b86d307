//! The datagrams of a worker, among its connections.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alluvium_io::datagrams::ServerDatagrams;

use super::{DATAGRAMS_TOKEN, Worker};
use crate::inbox::Inbox;
use crate::metrics::WorkerMetrics;
use crate::readiness::Event;
use crate::shared::Shared;
use crate::store::DatabaseNumber;
use crate::udp::{Items, Service, WorkerSocket};

/// How long datagrams are served before the connections get their turn.
const TURN: Duration = Duration::from_micros(500);

/// The datagrams of a worker.
pub(super) struct WorkerDatagrams {
    service: Service<ServerDatagrams>,
    metrics: Arc<WorkerMetrics>,
    /// Those of all workers, to wake them.
    inboxes: Arc<[Arc<Inbox>]>,
    /// When the last ones came, if more are expected.
    last: Option<Instant>,
}

impl WorkerDatagrams {
    pub(super) fn new(
        datagrams: Option<WorkerSocket>,
        shared: &Shared,
        inboxes: Arc<[Arc<Inbox>]>,
        number: usize,
    ) -> Option<Self> {
        let ((socket, handing), directing) = (datagrams?, shared.directing.clone()?);
        let metrics = Arc::clone(&shared.worker_metrics[number]);
        let service = Service::new(socket, directing, number, handing);
        Some(Self { service, metrics, inboxes, last: None })
    }

    /// The socket, for a poller.
    pub(super) fn socket(&self) -> impl AsFd + '_ {
        self.service.socket()
    }

    /// Whether to look for datagrams without waiting for the poller. If not, other workers wake this one.
    pub(super) fn is_due(&self) -> bool {
        self.last.is_some() || !self.service.may_sleep()
    }
}

impl Worker {
    /// Serves datagrams if some have come or are expected soon: burst after burst while they come, and then, for as
    /// long as the options say, by asking again and again.
    pub(super) fn serve_datagrams(&mut self, events: &[Event]) -> io::Result<()> {
        let Self { datagrams, shared, outbox, commands_in_round, .. } = self;
        let Some(datagrams) = datagrams else { return Ok(()) };
        let is_due = datagrams.last.is_some() || datagrams.service.was_given_more();
        if !is_due && !events.iter().any(|event| event.token == DATAGRAMS_TOKEN) {
            return Ok(());
        }
        let poll = shared.options.udp_poll;
        let begun = Instant::now();
        loop {
            let is_paused = shared.pause.paused().is_some();
            let first = DatabaseNumber::FIRST;
            let mut changed = |key: &[u8], event| outbox.changed(shared, first, 0, key, event);
            let mut items = Items { database: shared.store.database(first), changed: &mut changed };
            let (came, requests) =
                datagrams.service.serve(&mut items, &datagrams.metrics.datagrams, is_paused)?;
            *commands_in_round += requests;
            let inboxes = &datagrams.inboxes;
            datagrams.service.wake(|number| inboxes[number].wake());
            let now = Instant::now();
            if came > 0 && poll.is_zero() && !datagrams.service.may_have_more() {
                // The poller says when more have come.
                datagrams.last = None;
                return Ok(());
            } else if came > 0 {
                datagrams.last = Some(now);
            } else if datagrams.last.is_none_or(|last| now.duration_since(last) >= poll) {
                datagrams.last = None;
                return Ok(());
            } else {
                std::hint::spin_loop();
            }
            if now.duration_since(begun) >= TURN {
                return Ok(());
            }
        }
    }
}
