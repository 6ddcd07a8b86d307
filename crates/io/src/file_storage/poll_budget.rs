//! [`PollBudget`]: how much of a thread's reads it may poll for, by what reads take and what the thread costs.

use std::time::Duration;

/// A thread polls for one nanosecond at most for this many of all its other processor time.
const OTHER_PER_POLLED: u64 = 2;

/// Shorter reads come from a cache, and no processor sleeps meanwhile.
const READ_NS_MIN: u64 = 10_000;

/// During longer reads, the time that a processor takes to wake (tens of microseconds) doesn't matter.
const READ_NS_MAX: u64 = 500_000;

/// The mean of what reads take is over about this many reads.
const MEAN_READS: u64 = 8;

/// Reads between two looks at the thread's processor time, which takes a system call.
const READS_PER_LOOK: u32 = 32;

/// Maximum credit, in durations of a read: what a thread computes between its reads pays for no more.
const READS_SAVED_MAX: u64 = 8;

/// The account of one thread: what it may spend on polling. A pure function of the times that it was told.
///
/// Invariant: the time polled is at most half of the other processor time of the thread, plus what the last poll took
/// beyond its limit.
#[derive(Debug, Default)]
pub(super) struct PollBudget {
    /// Mean duration of recent reads, in nanoseconds; zero before the first.
    read_ns: u64,
    /// Processor time of the thread at the last look, in nanoseconds; zero before the first.
    seen_ns: u64,
    /// What may be polled; negative if the last poll took more.
    credit_ns: i64,
    reads_since_look: u32,
}

impl PollBudget {
    /// How long the thread may poll for its next read before it sleeps; `None` if it is to sleep at once. It is twice
    /// what a read takes, so that the poll will probably end with the read.
    pub(super) fn limit(&self) -> Option<Duration> {
        let limit = self.read_ns * 2;
        let is_useful = (READ_NS_MIN..=READ_NS_MAX).contains(&self.read_ns);
        (is_useful && self.credit_ns >= limit as i64).then(|| Duration::from_nanos(limit))
    }

    /// Notes that a read took `duration`, polled or not.
    pub(super) fn note_read(&mut self, duration: Duration) {
        // How much longer tells nothing, and one read must not decide the mean.
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).min(READ_NS_MAX * 2);
        self.read_ns = match self.read_ns {
            0 => ns,
            mean => mean - mean / MEAN_READS + ns / MEAN_READS,
        };
        self.reads_since_look += 1;
    }

    /// Whether the thread's processor time is due to be noted.
    pub(super) fn is_look_due(&self) -> bool {
        self.reads_since_look >= READS_PER_LOOK
    }

    /// Notes the thread's whole processor time. A share of what it took since the last look is credited.
    pub(super) fn note_cpu_time(&mut self, cpu_ns: u64) {
        // What came before the first look need not have been spent on reads.
        if self.seen_ns > 0 {
            let earned = cpu_ns.saturating_sub(self.seen_ns) / OTHER_PER_POLLED;
            let saved_max = (self.read_ns * READS_SAVED_MAX) as i64;
            self.credit_ns = self.credit_ns.saturating_add_unsigned(earned).min(saved_max);
        }
        self.seen_ns = cpu_ns;
        self.reads_since_look = 0;
    }

    /// Notes a poll from one processor time of the thread to another.
    pub(super) fn note_poll(&mut self, before_ns: u64, after_ns: u64) {
        self.note_cpu_time(before_ns);
        self.credit_ns = self.credit_ns.saturating_sub_unsigned(after_ns.saturating_sub(before_ns));
        self.seen_ns = after_ns;
    }
}
