//! Keeping the store writable and tidy: after its disk was full, it takes writes again once there is room; what no key
//! refers to is removed; delayed flushes happen; those who want to know hear that keys have expired.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::changes;
use crate::memcached;
use crate::readiness::{Interest, Poller};
use crate::shared::Shared;
use crate::store::StoreHealth;

/// How often the health of a store that takes writes is checked: an atomic load.
const HEALTH_PERIOD: Duration = Duration::from_secs(1);
/// The pause while there is more to tidy.
const TIDY_PAUSE: Duration = Duration::from_millis(10);
/// The pause after a failed resumption; it doubles from the minimum to the maximum, because each attempt tries to
/// write.
const RESUME_PAUSE_MIN: Duration = Duration::from_millis(100);
const RESUME_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Resumes the store whenever that may help, and flushes it when a client has asked for that, until the server stops.
pub(crate) fn keep(shared: &Shared) -> io::Result<()> {
    let mut poller = Poller::new()?;
    poller.add(shared.shutdown.waker().source(), 0, Interest::READ)?;
    let mut events = Vec::new();
    let mut pause = RESUME_PAUSE_MIN;
    let mut health = StoreHealth::Healthy;
    while !shared.shutdown.is_asked() {
        let mut timeout = HEALTH_PERIOD;
        let health_now = shared.store.health();
        if health_now != health {
            log(&health_now);
            health = health_now;
        }
        if let StoreHealth::Failed { resumable: true, .. } = shared.store.health() {
            match shared.store.resume() {
                Ok(()) => {
                    shared.resumptions.fetch_add(1, Ordering::Relaxed);
                    pause = RESUME_PAUSE_MIN;
                }
                // There is no room yet: INFO reports it.
                Err(_) => {
                    timeout = pause;
                    pause = (2 * pause).min(RESUME_PAUSE_MAX);
                }
            }
        }
        // A failure to remove what nobody sees is tried again.
        if shared.store.health() == StoreHealth::Healthy && shared.store.tidy().unwrap_or(false) {
            timeout = timeout.min(TIDY_PAUSE);
        }
        let due = [memcached::flush_if_due(shared), changes::expire_due(shared)];
        let timeout = due.into_iter().flatten().fold(timeout, Duration::min);
        poller.wait(&mut events, Some(timeout))?;
    }
    Ok(())
}

/// Writes to the log that the health has changed to this.
fn log(health: &StoreHealth) {
    match health {
        StoreHealth::Healthy => tracing::info!("the store works without failures"),
        StoreHealth::Retrying { reason } => {
            tracing::warn!(reason, "background work failed and is tried again");
        }
        StoreHealth::ReadOnly => tracing::info!("the store takes no writes: it was opened for reading"),
        StoreHealth::Failed { reason, resumable } => {
            tracing::error!(reason, resumable, "the store takes no writes");
        }
    }
}
