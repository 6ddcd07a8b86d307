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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OVERRUN_NS_MAX: u64 = 50_000;

    /// A thread under the budget: what it has used and polled, in nanoseconds.
    #[derive(Default)]
    struct Thread {
        budget: PollBudget,
        other_ns: u64,
        polled_ns: u64,
        polls: u64,
    }

    impl Thread {
        fn cpu_ns(&self) -> u64 {
            // No thread has used none.
            1 + self.other_ns + self.polled_ns
        }

        /// One read that takes `read_ns`, and work before it. A poll takes `overrun_ns` longer than it may, or than the
        /// read.
        fn read(&mut self, read_ns: u64, work_ns: u64, overrun_ns: u64) {
            self.other_ns += work_ns;
            if let Some(limit) = self.budget.limit() {
                let before = self.cpu_ns();
                self.polled_ns += read_ns.min(limit.as_nanos() as u64) + overrun_ns;
                self.polls += 1;
                self.budget.note_poll(before, self.cpu_ns());
            }
            self.budget.note_read(Duration::from_nanos(read_ns));
            if self.budget.is_look_due() {
                self.budget.note_cpu_time(self.cpu_ns());
            }
        }

        fn read_often(&mut self, reads: usize, read_ns: u64, work_ns: u64) {
            (0..reads).for_each(|_| self.read(read_ns, work_ns, 0));
        }
    }

    proptest! {
        #[test]
        fn polling_takes_at_most_half_of_the_other_time(
            reads in prop::collection::vec((0_u64..2_000_000, 0_u64..100_000, 0..=OVERRUN_NS_MAX), 1..2000)
        ) {
            let mut thread = Thread::default();
            for (read_ns, work_ns, overrun_ns) in reads {
                thread.read(read_ns, work_ns, overrun_ns);
                prop_assert!(thread.polled_ns <= thread.other_ns / OTHER_PER_POLLED + OVERRUN_NS_MAX);
            }
        }
    }

    #[test]
    fn a_busy_thread_uses_what_it_may() {
        let mut thread = Thread::default();
        thread.read_often(10_000, 150_000, 14_000);
        let share = thread.polled_ns as f64 / thread.other_ns as f64;
        assert!((0.48..=0.5).contains(&share), "{share}");
    }

    #[test]
    fn reads_of_a_cache_and_long_ones_are_not_polled() {
        for read_ns in [0, 1000, 9000, 600_000, 10_000_000, u64::MAX] {
            let mut thread = Thread::default();
            thread.read_often(1000, read_ns, 20_000);
            assert_eq!(thread.polls, 0, "{read_ns}");
        }
    }

    #[test]
    fn the_mean_follows_the_device() {
        let mut thread = Thread::default();
        thread.read_often(1000, 5_000_000, 20_000);
        assert_eq!(thread.polls, 0);
        thread.read_often(1000, 100_000, 20_000);
        assert!(thread.polls > 50);
        let before = thread.polls;
        thread.read_often(1000, 5_000_000, 20_000);
        assert!(thread.polls < before + 8);
    }

    #[test]
    fn work_between_reads_pays_for_few_polls() {
        let mut thread = Thread::default();
        thread.read_often(READS_PER_LOOK as usize, 100_000, 0);
        thread.read(100_000, 3_600_000_000_000, 0);
        thread.read_often(1000, 100_000, 0);
        assert!((1..=READS_SAVED_MAX).contains(&thread.polls), "{}", thread.polls);
    }
}
