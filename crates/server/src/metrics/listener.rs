//! [`MetricsListener`]: a small HTTP server on a port of its own.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::http_connection::HttpConnection;
use super::routes;
use crate::readiness::{Event, Interest, Poller};
use crate::shared::Shared;

/// Maximum number of connections; one more takes the place of the one that would be closed next.
pub(crate) const CONNECTIONS_MAX: usize = 32;
const LISTENER_TOKEN: u64 = 0;
const SHUTDOWN_TOKEN: u64 = 1;
/// How long to wait after the system has refused a connection, which would be reported again at once.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// Bound to its address, not yet serving. One thread serves all connections: answers take milliseconds, and only few
/// clients ask.
pub(crate) struct MetricsListener {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl MetricsListener {
    /// # Errors
    /// When the system does not tell the socket's address.
    pub(crate) fn new(listener: TcpListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Serves until the server is asked to stop.
    pub(crate) fn run(self, shared: &Shared) -> io::Result<()> {
        let mut poller = Poller::new()?;
        poller.add(&self.listener, LISTENER_TOKEN, Interest::READ)?;
        poller.add(shared.shutdown.waker().source(), SHUTDOWN_TOKEN, Interest::READ)?;
        let mut serving =
            Serving { poller, connections: BTreeMap::new(), next_token: SHUTDOWN_TOKEN + 1, shared };
        let mut events = Vec::new();
        while !shared.shutdown.is_asked() {
            let timeout = serving.next_deadline().map(|end| end.saturating_duration_since(Instant::now()));
            serving.poller.wait(&mut events, timeout)?;
            let now = Instant::now();
            for event in &events {
                match event.token {
                    LISTENER_TOKEN => serving.accept(&self.listener, now),
                    SHUTDOWN_TOKEN => {}
                    _ => serving.on_event(*event, now),
                }
            }
            serving.close_late(now);
        }
        Ok(())
    }
}

struct Serving<'a> {
    poller: Poller,
    connections: BTreeMap<u64, HttpConnection>,
    next_token: u64,
    shared: &'a Shared,
}

impl Serving<'_> {
    fn accept(&mut self, listener: &TcpListener, now: Instant) {
        loop {
            match listener.accept() {
                Ok((stream, _)) => self.admit(stream, now),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted
                    ) => {}
                Err(_) => {
                    thread::sleep(ACCEPT_RETRY);
                    return;
                }
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, now: Instant) {
        if stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).is_err() {
            return;
        }
        if self.connections.len() == CONNECTIONS_MAX {
            let next = self.connections.iter().min_by_key(|(_, connection)| connection.deadline);
            let next = next.map(|(token, _)| *token);
            next.into_iter().for_each(|token| self.close(token));
        }
        let token = self.next_token;
        self.next_token += 1;
        if self.poller.add(&stream, token, Interest::READ).is_ok() {
            self.connections.insert(token, HttpConnection::new(stream, now));
        }
    }

    fn on_event(&mut self, event: Event, now: Instant) {
        let Some(connection) = self.connections.get_mut(&event.token) else { return };
        let before = connection.interest;
        let shared = self.shared;
        let stays = connection.advance(now, &mut |path| routes::answer(path, shared)).unwrap_or(false);
        let after = connection.interest;
        let is_watched =
            before == after || self.poller.change(&connection.stream, event.token, after).is_ok();
        if !stays || !is_watched {
            self.close(event.token);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.connections.values().map(|connection| connection.deadline).min()
    }

    fn close_late(&mut self, now: Instant) {
        let late = self.connections.iter().filter(|(_, connection)| connection.deadline <= now);
        let late: Vec<u64> = late.map(|(token, _)| *token).collect();
        late.into_iter().for_each(|token| self.close(token));
    }

    fn close(&mut self, token: u64) {
        if let Some(connection) = self.connections.remove(&token) {
            // Closing the socket would end the watch as well, but not on every system.
            let _ = self.poller.remove(&connection.stream, token);
        }
    }
}
