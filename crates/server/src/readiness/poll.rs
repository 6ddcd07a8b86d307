//! Readiness from poll(2). A wait costs O(watched sockets), and each watched socket needs a second descriptor.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use super::{Event, Interest, timespec};

pub(crate) struct Poller {
    /// Descriptors of our own, because poll needs all of them at every wait and the sockets' owners are elsewhere.
    sources: BTreeMap<u64, (OwnedFd, Interest)>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { sources: BTreeMap::new() })
    }

    /// Watches `source` until it is removed.
    pub(crate) fn add(&mut self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let source = source.as_fd().try_clone_to_owned()?;
        self.sources.insert(token, (source, interest));
        Ok(())
    }

    /// Changes what `source` is watched for.
    pub(crate) fn change(&mut self, _source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let watched = self.sources.get_mut(&token).ok_or(io::ErrorKind::NotFound)?;
        watched.1 = interest;
        Ok(())
    }

    /// Stops watching `source`.
    pub(crate) fn remove(&mut self, _source: impl AsFd, token: u64) -> io::Result<()> {
        self.sources.remove(&token).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Waits until something is ready, at most `timeout`, and replaces `events` by the new ones. A signal ends the wait
    /// with no events.
    pub(crate) fn wait(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        events.clear();
        let mut polled: Vec<PollFd<'_>> =
            self.sources.values().map(|(source, interest)| PollFd::new(source, flags(*interest))).collect();
        match rustix::event::poll(&mut polled, timeout.map(timespec).as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for (token, polled) in self.sources.keys().zip(&polled) {
            let ready = polled.revents();
            let broken = ready.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
            if !ready.is_empty() {
                events.push(Event {
                    token: *token,
                    readable: broken || ready.contains(PollFlags::IN),
                    writable: broken || ready.contains(PollFlags::OUT),
                });
            }
        }
        Ok(())
    }
}

fn flags(interest: Interest) -> PollFlags {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, interest.read);
    flags.set(PollFlags::OUT, interest.write);
    flags
}
