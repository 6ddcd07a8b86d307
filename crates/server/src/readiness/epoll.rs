//! Readiness from Linux's epoll. A wait costs O(ready sockets).

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};

use super::{Event, Interest, timespec};

/// Maximum number of events that one wait reports; the rest come with the next.
const EVENTS_MAX: usize = 256;

pub(crate) struct Poller {
    epoll: OwnedFd,
    raw: Vec<epoll::Event>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?, raw: Vec::with_capacity(EVENTS_MAX) })
    }

    /// Watches `source` until it is removed or closed.
    pub(crate) fn add(&mut self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, EventData::new_u64(token), flags(interest))?)
    }

    /// Changes what `source` is watched for.
    pub(crate) fn change(&mut self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, source, EventData::new_u64(token), flags(interest))?)
    }

    /// Stops watching `source`.
    pub(crate) fn remove(&mut self, source: impl AsFd, _token: u64) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, source)?)
    }

    /// Waits until something is ready, at most `timeout`, and replaces `events` by the new ones. A signal ends the wait
    /// with no events.
    pub(crate) fn wait(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        events.clear();
        self.raw.clear();
        let timeout = timeout.map(timespec);
        match epoll::wait(&self.epoll, spare_capacity(&mut self.raw), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        events.extend(self.raw.iter().map(|raw| {
            // Copied out first: the kernel's struct is packed.
            let (flags, data) = (raw.flags, raw.data);
            let broken = flags.intersects(EventFlags::ERR | EventFlags::HUP);
            Event {
                token: data.u64(),
                readable: broken || flags.contains(EventFlags::IN),
                writable: broken || flags.contains(EventFlags::OUT),
            }
        }));
        Ok(())
    }
}

fn flags(interest: Interest) -> EventFlags {
    let mut flags = EventFlags::empty();
    flags.set(EventFlags::IN, interest.read);
    flags.set(EventFlags::OUT, interest.write);
    flags
}
