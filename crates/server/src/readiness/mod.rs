//! Which sockets can be read or written: one interface to epoll (Linux) and poll (every other Unix).
//!
//! Level-triggered: what is not read or written now is reported again. One thread owns a `Poller`.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::Timespec;

#[cfg(target_os = "linux")]
mod epoll;
#[cfg(any(not(target_os = "linux"), test))]
mod poll;

#[cfg(target_os = "linux")]
pub(crate) use epoll::Poller;
#[cfg(not(target_os = "linux"))]
pub(crate) use poll::Poller;

/// What to report about a socket. A hang-up or an error is reported as readable and writable, whatever was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Interest {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

impl Interest {
    pub(crate) const READ: Self = Self { read: true, write: false };
}

/// A socket is ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// The number that the socket was added with.
    pub(crate) token: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

/// Ends the wait of a poller from other threads: a socket pair, whose reading end the poller watches.
#[derive(Debug)]
pub(crate) struct Waker {
    sender: UnixStream,
    receiver: UnixStream,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        Ok(Self { sender, receiver })
    }

    /// Wakes the watcher, now or at its next wait.
    pub(crate) fn wake(&self) {
        // A full socket has a wake-up pending already, and if the other end is closed there is no watcher left to wake.
        let _ = (&self.sender).write(&[1]);
    }

    /// The end to watch for reading.
    pub(crate) fn source(&self) -> impl AsFd + '_ {
        &self.receiver
    }

    /// A second handle of the end that wakes, for signal handlers.
    pub(crate) fn sender(&self) -> io::Result<UnixStream> {
        self.sender.try_clone()
    }

    /// Discards the wake-ups so far.
    pub(crate) fn drain(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.receiver).read(&mut bytes), Ok(read) if read == bytes.len()) {}
    }
}

fn timespec(timeout: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same short story for every implementation.
    macro_rules! story {
        ($name:ident, $poller:ty) => {
            #[test]
            fn $name() {
                let (near, far) = UnixStream::pair().unwrap();
                let waker = Waker::new().unwrap();
                let mut poller = <$poller>::new().unwrap();
                let mut events = Vec::new();
                let mut ready = |poller: &mut $poller| {
                    poller.wait(&mut events, Some(Duration::from_millis(200))).unwrap();
                    events.sort_by_key(|event| event.token);
                    events.iter().map(|e| (e.token, e.readable, e.writable)).collect::<Vec<_>>()
                };
                poller.add(&near, 7, Interest::READ).unwrap();
                poller.add(waker.source(), 9, Interest::READ).unwrap();
                assert_eq!(ready(&mut poller), []);
                (&far).write_all(b"x").unwrap();
                assert_eq!(ready(&mut poller), [(7, true, false)]);
                poller.change(&near, 7, Interest { read: true, write: true }).unwrap();
                assert_eq!(ready(&mut poller), [(7, true, true)]);
                poller.change(&near, 7, Interest { read: false, write: true }).unwrap();
                assert_eq!(ready(&mut poller), [(7, false, true)]);
                waker.wake();
                waker.wake();
                assert_eq!(ready(&mut poller), [(7, false, true), (9, true, false)]);
                waker.drain();
                poller.change(&near, 7, Interest::default()).unwrap();
                assert_eq!(ready(&mut poller), []);
                drop(far);
                assert_eq!(ready(&mut poller), [(7, true, true)]);
                poller.remove(&near, 7).unwrap();
                assert_eq!(ready(&mut poller), []);
            }
        };
    }

    #[cfg(target_os = "linux")]
    story!(epoll_tells_what_is_ready, epoll::Poller);
    story!(poll_tells_what_is_ready, poll::Poller);
}
