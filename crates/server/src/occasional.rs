//! [`Occasional`]: log lines that clients could cause by the thousand.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Between two lines of one kind.
const PERIOD: Duration = Duration::from_secs(1);

/// One kind of line: at most one a second is written, and says how many were not.
#[derive(Debug, Default)]
pub(crate) struct Occasional {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    written: Option<Instant>,
    skipped: u64,
}

impl Occasional {
    /// Calls `write` with the number of lines that were skipped since the last one, unless this line is skipped, too.
    /// A line that another thread is about to write counts as written.
    pub(crate) fn write(&self, write: impl FnOnce(u64)) {
        let Ok(mut state) = self.state.try_lock() else { return };
        if state.written.is_some_and(|written| written.elapsed() < PERIOD) {
            state.skipped += 1;
            return;
        }
        let skipped = std::mem::take(&mut state.skipped);
        state.written = Some(Instant::now());
        drop(state);
        write(skipped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_one_line() {
        let kind = Occasional::default();
        let mut lines = Vec::new();
        for _ in 0..1000 {
            kind.write(|skipped| lines.push(skipped));
        }
        assert!(lines.len() < 100, "{lines:?}");
        std::thread::sleep(PERIOD);
        kind.write(|skipped| lines.push(skipped));
        let skipped: u64 = lines.iter().sum();
        assert_eq!(skipped + lines.len() as u64, 1001);
    }
}
