//! Stopping a server from elsewhere.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::readiness::Waker;

/// Asks a running server to stop; clones ask the same server.
///
/// A server that is asked takes no more requests, sends the replies it owes (for at most
/// [`shutdown_grace`](crate::ServerOptions::shutdown_grace)), closes its connections, and
/// [`Server::run`](crate::Server::run) returns. The store stays open: its owner closes it.
#[derive(Clone, Debug)]
pub struct ShutdownHandle {
    asked: Arc<AtomicBool>,
    waker: Arc<Waker>,
}

impl ShutdownHandle {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { asked: Arc::default(), waker: Arc::new(Waker::new()?) })
    }

    /// Asks the server to stop; returns at once, and may be called again.
    pub fn shutdown(&self) {
        self.asked.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Whether the server was asked to stop.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// Makes SIGTERM and SIGINT ask the server to stop, from now on, instead of ending the process.
    ///
    /// # Errors
    /// When the system refuses the handler.
    pub fn on_termination_signals(&self) -> io::Result<()> {
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
            signal_hook::flag::register(signal, Arc::clone(&self.asked))?;
            // After the flag: actions run in the order they were registered in.
            signal_hook::low_level::pipe::register(signal, self.waker.sender()?)?;
        }
        Ok(())
    }

    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }
}
