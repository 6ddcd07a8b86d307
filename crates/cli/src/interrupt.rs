//! SIGINT and SIGTERM end long work at a point where nothing is lost.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};

/// Longest time from a signal to the end of a wait.
const WAIT: Duration = Duration::from_millis(50);

/// Whether the user has requested to stop.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Handles the signals from now on. A second one ends the process at once.
    pub fn on_signals() -> io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the first signal finds the flag still clear, and sets it.
            signal_hook::flag::register_conditional_default(signal, flag.clone())?;
            signal_hook::flag::register(signal, flag.clone())?;
        }
        Ok(Self(flag))
    }

    /// Whether a signal has arrived.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Calls `act` on a thread of its own when a signal comes. Waiting takes no processor time.
    pub fn on_signal(&self, act: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let (mut receiver, sender) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
        }
        let wait = move || {
            // The senders live as long as the process, so that a read ends with a signal only.
            while let Err(error) = receiver.read_exact(&mut [0]) {
                if error.kind() != io::ErrorKind::Interrupted {
                    return;
                }
            }
            act();
        };
        std::thread::Builder::new().name("interrupt".to_owned()).spawn(wait)?;
        Ok(())
    }

    /// Waits for `time` or a signal; returns whether a signal has arrived.
    pub fn wait(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while !self.is_set() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            std::thread::sleep(left.min(WAIT));
        }
        true
    }
}
