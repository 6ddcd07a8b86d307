//! [`Inbox`]: how other threads reach a worker.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::counter::Answer;
use crate::readiness::Waker;
use crate::session::Session;

/// How new connections and wake-ups reach a worker.
pub(crate) struct Inbox {
    arrivals: Mutex<Vec<(TcpStream, Session)>>,
    /// Counts for connections of the worker.
    answers: Mutex<Vec<Answer>>,
    waker: Waker,
    /// Connections that the worker has or will take.
    pub(crate) load: AtomicUsize,
}

impl Inbox {
    pub(crate) fn new() -> io::Result<Self> {
        let (arrivals, answers) = (Mutex::default(), Mutex::default());
        Ok(Self { arrivals, answers, waker: Waker::new()?, load: AtomicUsize::new(0) })
    }

    /// Hands a connection over. The socket must be non-blocking.
    pub(crate) fn send(&self, stream: TcpStream, session: Session) {
        self.load.fetch_add(1, Ordering::Relaxed);
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).push((stream, session));
        self.waker.wake();
    }

    /// Hands over a count that a connection waits for.
    pub(crate) fn answer(&self, answer: Answer) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
        self.waker.wake();
    }

    /// Takes the connections that were handed over.
    pub(crate) fn take_arrivals(&self) -> Vec<(TcpStream, Session)> {
        std::mem::take(&mut *self.arrivals.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the counts that were handed over.
    pub(crate) fn take_answers(&self) -> Vec<Answer> {
        std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the worker watches.
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Wakes the worker to check whether the server is stopping.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }
}
