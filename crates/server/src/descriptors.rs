//! File descriptors: how many the process may have, and how many of them are for connections.

use std::io;

use crate::metrics::CONNECTIONS_MAX;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Maximum to which the soft limit is raised: a hard limit of billions means that nobody has set one.
const RAISED_MAX: u64 = 1 << 20;
/// Descriptors of a server in addition to its workers and clients: the listener, the handle that stops it and that of
/// signals, the pollers of the threads that accept and keep, the one for refusing.
const SERVER_DESCRIPTORS: u64 = 12;
/// The listener of metrics, its poller, and its connections.
const METRICS_DESCRIPTORS: u64 = 2 + CONNECTIONS_MAX as u64;
/// A poller, and both ends of what wakes it.
const WORKER_DESCRIPTORS: u64 = 3;
/// Where sockets are watched by poll(2), each has two descriptors.
const CLIENT_DESCRIPTORS: u64 = if cfg!(target_os = "linux") { 1 } else { 2 };

/// Raises the number of descriptors that this process may have (`ulimit -n`) as far as it may, up to 2^20, and returns
/// it. For programs that serve; to be called before they open the store, because both divide the descriptors that there
/// are when they begin.
///
/// # Errors
/// When the system does not raise it; then the limit is unchanged.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let (current, reachable) = (current.unwrap_or(u64::MAX), maximum.unwrap_or(u64::MAX).min(RAISED_MAX));
    if current >= reachable {
        return Ok(current);
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(reachable), maximum })?;
    Ok(reachable)
}

/// Number of clients that are served at once if `asked` are wanted: half of the descriptors belong to the store.
pub(crate) fn clients_max(asked: usize, workers: usize, has_metrics: bool) -> usize {
    let own = if has_metrics { METRICS_DESCRIPTORS } else { 0 };
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    clients_within(descriptors.saturating_sub(2 * own), asked, workers)
}

fn clients_within(descriptors: u64, asked: usize, workers: usize) -> usize {
    let own = SERVER_DESCRIPTORS + WORKER_DESCRIPTORS * workers as u64;
    let clients = (descriptors / 2).saturating_sub(own) / CLIENT_DESCRIPTORS;
    asked.min(usize::try_from(clients).unwrap_or(usize::MAX)).max(1)
}

/// Whether the process or the system has no descriptor left.
pub(crate) fn has_run_out(error: &io::Error) -> bool {
    use rustix::io::Errno;
    Errno::from_io_error(error).is_some_and(|errno| errno == Errno::MFILE || errno == Errno::NFILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_descriptors_is_for_connections() {
        let each = |clients: u64| (clients / CLIENT_DESCRIPTORS) as usize;
        assert_eq!(clients_within(1024, 10_000, 4), each(512 - 24));
        assert_eq!(clients_within(1024, 100, 4), 100);
        assert_eq!(clients_within(1 << 20, 10_000, 4), 10_000);
        assert_eq!(clients_within(u64::MAX, usize::MAX, 4), each(u64::MAX / 2 - 24));
        // A server serves at least one client.
        assert_eq!(clients_within(16, 10_000, 64), 1);
    }

    #[test]
    fn the_limit_is_raised_once() {
        let raised = raise_descriptor_limit().unwrap();
        assert_eq!(raise_descriptor_limit().unwrap(), raised);
    }
}
