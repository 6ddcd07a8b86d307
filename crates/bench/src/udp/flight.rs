//! [`Flight`]: a call that is under way, beside others of the same thread.

use std::thread;
use std::time::{Duration, Instant};

use crate::error::BenchError;

/// A call that is under way, or will be.
pub(super) trait Flight {
    /// Begins a call, which was due at that time.
    fn begin(&mut self, due: Instant);

    /// Sends and receives without waiting; returns whether the call has ended.
    ///
    /// # Errors
    /// A wrong answer, or a socket that has failed.
    fn advance(&mut self) -> Result<bool, BenchError>;
}

/// Begins calls for a time, with `interval` between two of them or as soon as others have ended, and returns when all
/// have ended.
///
/// A thread never sleeps: who wakes it would pay for that, which is the server, and that is not what a request costs.
///
/// # Errors
/// Those of the flights.
pub(super) fn fly<F: Flight>(
    flights: &mut [F],
    seconds: f64,
    interval: Option<Duration>,
) -> Result<(), BenchError> {
    let begun = Instant::now();
    let end = begun + Duration::from_secs_f64(seconds);
    let mut due = begun;
    let mut is_free = vec![true; flights.len()];
    loop {
        let now = Instant::now();
        let mut has_progressed = false;
        for (flight, is_free) in flights.iter_mut().zip(&mut is_free) {
            if *is_free && now < end && interval.is_none_or(|_| due <= now) {
                *is_free = false;
                flight.begin(if interval.is_some() { due } else { Instant::now() });
                due += interval.unwrap_or_default();
            }
            if !*is_free {
                *is_free = flight.advance()?;
                has_progressed |= *is_free;
            }
        }
        if now >= end && is_free.iter().all(|is_free| *is_free) {
            return Ok(());
        }
        if !has_progressed {
            // A server without a processor of its own gets this one.
            thread::yield_now();
        }
    }
}
