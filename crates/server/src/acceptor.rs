//! [`Acceptor`]: hands connections to workers.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use crate::client::{Client, Ends};
use crate::client_memory::CONNECTION_BYTES;
use crate::descriptors;
use crate::inbox::Inbox;
use crate::protocol::Protocol;
use crate::readiness::{Interest, Poller};
use crate::session::Session;
use crate::shared::Shared;
use crate::socket::{Listening, Stream};

const SHUTDOWN_TOKEN: u64 = u64::MAX;
/// How long to wait before accepting again if not even the descriptor kept for refusing could be opened.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// Accepts connections on one thread.
pub(crate) struct Acceptor<'a> {
    shared: &'a Shared,
    /// Those of the workers.
    inboxes: Vec<Arc<Inbox>>,
    next_id: u64,
    /// Given up for refusing when no other descriptor is left.
    spare: Option<File>,
}

impl<'a> Acceptor<'a> {
    pub(crate) fn new(shared: &'a Shared, inboxes: Vec<Arc<Inbox>>) -> Self {
        Self { shared, inboxes, next_id: 1, spare: spare_descriptor() }
    }

    /// Accepts until the server is asked to stop.
    ///
    /// # Errors
    /// When the poller fails.
    pub(crate) fn run(mut self, all: &[Listening]) -> io::Result<()> {
        let shutdown = &self.shared.shutdown;
        let mut poller = Poller::new()?;
        poller.add(shutdown.waker().source(), SHUTDOWN_TOKEN, Interest::READ)?;
        for (token, listening) in all.iter().enumerate() {
            poller.add(listening, token as u64, Interest::READ)?;
        }
        let mut events = Vec::new();
        while !shutdown.is_asked() {
            poller.wait(&mut events, None)?;
            for listening in all {
                self.accept_all(listening);
            }
        }
        Ok(())
    }

    /// Accepts the connections that wait at a listener.
    fn accept_all(&mut self, listening: &Listening) {
        loop {
            match listening.accept() {
                Ok((stream, peer)) => {
                    let user = Arc::clone(self.shared.users.default());
                    let ends = Ends { peer, local: listening.endpoint.clone() };
                    let mut session = Session::new(Client::new(self.next_id, Some(ends), user));
                    session.protocol = listening.protocol;
                    self.next_id += 1;
                    self.admit(stream, session);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The connection went away before we took it.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted
                    ) => {}
                // This passes when descriptors are freed. A connection that stayed in the queue would be reported
                // again and again, so it is taken with the descriptor that is kept for this, and refused.
                Err(error) if descriptors::has_run_out(&error) && self.spare.take().is_some() => {
                    if let Ok((stream, _)) = listening.accept() {
                        self.shared.connections_accepted.fetch_add(1, Ordering::Relaxed);
                        self.refuse(stream, listening.protocol);
                    }
                    self.spare = spare_descriptor();
                }
                Err(_) => {
                    thread::sleep(ACCEPT_RETRY);
                    self.spare = self.spare.take().or_else(spare_descriptor);
                    break;
                }
            }
        }
    }

    /// Gives a connection to the worker with the fewest, or refuses it if there are too many.
    fn admit(&self, stream: Stream, session: Session) {
        let shared = self.shared;
        shared.connections_accepted.fetch_add(1, Ordering::Relaxed);
        if shared.clients.load(Ordering::Acquire) >= shared.clients_max() {
            self.refuse(stream, session.protocol);
            return;
        }
        if stream.prepare().is_err() {
            return;
        }
        if let Some(inbox) = self.inboxes.iter().min_by_key(|inbox| inbox.load.load(Ordering::Relaxed)) {
            shared.clients.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(id = session.id, client = session.client.peer(), "a client connects");
            shared.memory.charge(CONNECTION_BYTES);
            session.client.set_descriptor(stream.as_raw_fd());
            shared.connected.add(Arc::clone(&session.client), Arc::clone(inbox));
            inbox.send(stream, session);
        }
    }

    /// Tells a client that there are too many, and closes the connection.
    fn refuse(&self, mut stream: Stream, protocol: Protocol) {
        let shared = self.shared;
        shared.connections_refused.fetch_add(1, Ordering::Relaxed);
        shared.refused_log.write(|more| {
            let clients = shared.clients.load(Ordering::Relaxed);
            tracing::warn!(clients, clients_max = shared.clients_max(), more, "a connection is refused");
        });
        // The socket is fresh, so these bytes fit; a client that is gone needs no answer.
        let _ = stream.write(match protocol {
            Protocol::Memcached => &b"ERROR Too many open connections\r\n"[..],
            Protocol::Redis | Protocol::Undecided => b"-ERR max number of clients reached\r\n",
        });
    }
}

/// A spare descriptor, to give up when there is none left.
fn spare_descriptor() -> Option<File> {
    File::open("/dev/null").ok()
}
