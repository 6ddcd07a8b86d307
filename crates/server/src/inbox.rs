//! [`Inbox`]: how other threads reach a worker.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::answer::Answer;
use crate::commits::{Outcome, Ticket};
use crate::mail::Message;
use crate::readiness::Waker;
use crate::session::Session;
use crate::socket::Stream;

/// Maximum number of bytes of messages that wait for a worker, or a quarter of what clients may hold. One that does not
/// take them in time ends the connections that take messages, as it does with those that do not read.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Messages for connections of a worker.
#[derive(Default)]
pub(crate) struct Messages {
    pub(crate) waiting: Vec<Message>,
    bytes: usize,
    /// Some did not fit.
    pub(crate) is_incomplete: bool,
}

/// How new connections and wake-ups reach a worker.
pub(crate) struct Inbox {
    arrivals: Mutex<Vec<(Stream, Session)>>,
    /// What connections of the worker wait for.
    answers: Mutex<Vec<Answer>>,
    messages: Mutex<Messages>,
    /// Connections that other clients want to be closed.
    kills: Mutex<Vec<u64>>,
    /// Commits that have ended and for which the worker waits, in their order.
    commits: Mutex<Vec<(Ticket, Outcome)>>,
    waker: Waker,
    message_bytes_max: usize,
    /// Connections that the worker has or will take.
    pub(crate) load: AtomicUsize,
}

impl Inbox {
    /// For a worker of a server whose clients may hold `client_bytes_max` bytes.
    pub(crate) fn new(client_bytes_max: usize) -> io::Result<Self> {
        let (arrivals, answers, messages, kills, commits) = Default::default();
        let message_bytes_max = MESSAGE_BYTES_MAX.min(client_bytes_max / 4);
        let (waker, load) = (Waker::new()?, AtomicUsize::new(0));
        Ok(Self { arrivals, answers, messages, kills, commits, waker, message_bytes_max, load })
    }

    /// Hands a connection over. The socket must be non-blocking.
    pub(crate) fn send(&self, stream: Stream, session: Session) {
        self.load.fetch_add(1, Ordering::Relaxed);
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).push((stream, session));
        self.waker.wake();
    }

    /// Hands over what a connection waits for.
    pub(crate) fn answer(&self, answer: Answer) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
        self.waker.wake();
    }

    /// Hands over a message for connections of the worker.
    pub(crate) fn deliver(&self, message: Message) {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = message.bytes();
        if messages.bytes + bytes > self.message_bytes_max {
            messages.is_incomplete = true;
        } else {
            messages.bytes += bytes;
            messages.waiting.push(message);
        }
        drop(messages);
        self.waker.wake();
    }

    /// Notes that there was no room for a message.
    pub(crate) fn overflow(&self) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).is_incomplete = true;
        self.waker.wake();
    }

    /// Takes the messages that were handed over.
    pub(crate) fn take_messages(&self) -> Messages {
        std::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the connections that were handed over.
    pub(crate) fn take_arrivals(&self) -> Vec<(Stream, Session)> {
        std::mem::take(&mut *self.arrivals.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the answers that were handed over.
    pub(crate) fn take_answers(&self) -> Vec<Answer> {
        std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that a commit for which the worker waits has ended. The caller wakes the worker.
    pub(crate) fn end_commit(&self, ticket: Ticket, outcome: Outcome) {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner).push((ticket, outcome));
    }

    /// Takes the commits that have ended, in their order.
    pub(crate) fn take_commits(&self) -> Vec<(Ticket, Outcome)> {
        std::mem::take(&mut *self.commits.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks for the end of a connection.
    pub(crate) fn kill(&self, id: u64) {
        self.kills.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        self.waker.wake();
    }

    /// Takes the numbers of the connections that are to be closed.
    pub(crate) fn take_kills(&self) -> Vec<u64> {
        std::mem::take(&mut *self.kills.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the worker watches.
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Wakes the worker.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }
}
