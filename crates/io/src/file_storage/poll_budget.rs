//! [`PollBudget`]: during which of its reads a thread polls, by what reads take and what they cost it.

use std::time::Duration;

/// Polling may cost a nanosecond for this many that the thread would use asleep: its reads and all its other work.
const ASLEEP_PER_POLLED: i64 = 2;

/// Shorter reads come from a cache, and no processor sleeps meanwhile.
const READ_NS_MIN: u64 = 10_000;

/// During longer reads, the time that a processor takes to wake (tens of microseconds) doesn't matter.
const READ_NS_MAX: u64 = 500_000;

/// Threads begin to spend what they may at the same moments, this far apart: together they keep all processors awake.
const WINDOW_NS: u64 = 20_000_000;

/// Maximum credit: what a thread can earn from one window to the next.
const CREDIT_NS_MAX: i64 = WINDOW_NS as i64 / ASLEEP_PER_POLLED;

/// Reads from one look at the thread's processor time, a system call, to the next.
const STRETCH_READS: u32 = 8;

/// Weight of the past in a mean of reads or of stretches, the newest having one.
const PAST_WEIGHT: u64 = 7;

/// What a thread does in a stretch of reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stretch {
    /// It sleeps until the next window.
    #[default]
    Rest,
    /// It sleeps at the beginning of a window, to see again what that costs.
    Look,
    /// It polls.
    Poll,
}

/// The account of one thread: what it may spend on polling. A pure function of the times that it was told.
///
/// Invariant: what reads cost beyond the same reads asleep is at most half of what everything costs asleep, and one
/// stretch more. It holds as far as the thread's work for a read is the same in stretches that follow each other.
#[derive(Debug, Default)]
pub(super) struct PollBudget {
    /// Mean duration of a read, in nanoseconds; zero before the first.
    read_ns: u64,
    /// Mean processor time of the thread from one read to the next while it sleeps during reads; zero while unknown.
    asleep_ns: u64,
    /// What polling may cost; negative if the last stretch cost more.
    credit_ns: i64,
    /// Number of the present window.
    window: u64,
    stretch: Stretch,
    /// Reads in this stretch.
    reads: u32,
    /// Processor time of the thread at its beginning; zero before the first.
    seen_ns: u64,
}

impl PollBudget {
    /// How long the thread may poll for its next read before it sleeps; `None` if it is to sleep at once. It is twice
    /// what a read takes, so that the poll will probably end with the read.
    pub(super) fn limit(&self) -> Option<Duration> {
        (self.stretch == Stretch::Poll).then(|| Duration::from_nanos(self.read_ns * 2))
    }

    /// Notes that a read took `duration`, polled or not.
    pub(super) fn note_read(&mut self, duration: Duration) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.read_ns = mean(self.read_ns, ns);
        self.reads = self.reads.saturating_add(1);
    }

    /// Whether the stretch ends before a read that begins at `now_ns`, by a clock that all threads share.
    pub(super) fn is_look_due(&self, now_ns: u64) -> bool {
        now_ns / WINDOW_NS != self.window || (self.stretch != Stretch::Rest && self.reads >= STRETCH_READS)
    }

    /// Ends the stretch at `now_ns`, when the thread has used `cpu_ns` of processor time since it began, and begins the
    /// next one.
    pub(super) fn look(&mut self, now_ns: u64, cpu_ns: u64) {
        if self.seen_ns > 0 {
            self.settle(cpu_ns.saturating_sub(self.seen_ns));
        }
        (self.seen_ns, self.reads) = (cpu_ns, 0);
        let window = now_ns / WINDOW_NS;
        self.stretch = if window != self.window {
            Stretch::Look
        } else if self.may_poll() {
            Stretch::Poll
        } else {
            Stretch::Rest
        };
        self.window = window;
    }

    fn may_poll(&self) -> bool {
        let is_useful = (READ_NS_MIN..=READ_NS_MAX).contains(&self.read_ns);
        is_useful && self.asleep_ns > 0 && self.credit_ns > 0 && self.stretch != Stretch::Rest
    }

    /// Settles the account of a stretch that cost `spent_ns`.
    fn settle(&mut self, spent_ns: u64) {
        let reads = u64::from(self.reads);
        let asleep_ns = if self.stretch == Stretch::Poll {
            (reads * self.asleep_ns).min(spent_ns)
        } else {
            if reads >= u64::from(STRETCH_READS) {
                self.asleep_ns = mean(self.asleep_ns, spent_ns / reads);
            }
            spent_ns
        };
        let polled_ns = (spent_ns - asleep_ns) as i64;
        self.credit_ns += (asleep_ns.min(WINDOW_NS) as i64) / ASLEEP_PER_POLLED - polled_ns;
        self.credit_ns = self.credit_ns.min(CREDIT_NS_MAX);
    }
}

/// The mean of `past`, zero if there is none, and `newest`. No single value decides it: those beyond what matters here
/// are cut.
fn mean(past: u64, newest: u64) -> u64 {
    let newest = newest.min(READ_NS_MAX * 2);
    if past == 0 { newest } else { (past * PAST_WEIGHT + newest) / (PAST_WEIGHT + 1) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A thread under the budget, whose reads take and cost the same for a time. All in nanoseconds.
    #[derive(Clone, Copy, Debug)]
    struct Reads {
        duration: u64,
        /// Processor time of a read asleep, and of the work until the next.
        asleep: u64,
        /// Processor time of a polled one beyond that.
        extra: u64,
    }

    /// Reads of a disk at the rates that were measured.
    const DISK: Reads = Reads { duration: 150_000, asleep: 22_000, extra: 20_000 };

    #[derive(Default)]
    struct Thread {
        budget: PollBudget,
        now_ns: u64,
        asleep_ns: u64,
        extra_ns: u64,
        reads: u64,
        polls: u64,
    }

    impl Thread {
        /// One read; returns whether it was polled.
        fn read(&mut self, reads: Reads) -> bool {
            if self.budget.is_look_due(self.now_ns) {
                // No thread has used none.
                self.budget.look(self.now_ns, 1 + self.asleep_ns + self.extra_ns);
            }
            let polls = self.budget.limit().is_some();
            self.extra_ns += if polls { reads.extra } else { 0 };
            self.asleep_ns += reads.asleep;
            self.now_ns += reads.duration + reads.asleep;
            self.budget.note_read(Duration::from_nanos(reads.duration));
            self.reads += 1;
            self.polls += u64::from(polls);
            polls
        }

        fn read_often(&mut self, count: usize, reads: Reads) {
            for _ in 0..count {
                self.read(reads);
            }
        }
    }

    proptest! {
        #[test]
        fn polling_costs_at_most_half_of_what_the_thread_costs_asleep(
            duration in 0_u64..1_000_000, asleep in 1_u64..200_000, extra in 0_u64..1_000_000, count in 1_usize..5000
        ) {
            let mut thread = Thread::default();
            thread.read_often(count, Reads { duration, asleep, extra });
            let slack = u64::from(STRETCH_READS) * extra;
            prop_assert!(thread.extra_ns <= thread.asleep_ns / 2 + slack, "{} {}", thread.extra_ns, thread.asleep_ns);
        }

        #[test]
        fn nothing_overflows(
            reads in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 1..200)
        ) {
            let mut budget = PollBudget::default();
            for (now_ns, cpu_ns, duration) in reads {
                for _ in 0..10 {
                    budget.note_read(Duration::from_nanos(duration));
                }
                budget.look(now_ns, cpu_ns);
            }
        }
    }

    #[test]
    fn a_busy_thread_uses_what_it_may() {
        let mut thread = Thread::default();
        thread.read_often(20_000, DISK);
        let share = thread.extra_ns as f64 / thread.asleep_ns as f64;
        assert!((0.45..=0.5).contains(&share), "{share}");
    }

    #[test]
    fn polling_that_costs_little_goes_on_but_for_looks() {
        let mut thread = Thread::default();
        thread.read_often(20_000, Reads { extra: 5000, ..DISK });
        assert!(thread.polls * 100 > thread.reads * 85, "{} of {}", thread.polls, thread.reads);
    }

    #[test]
    fn reads_of_a_cache_and_long_ones_are_not_polled() {
        for duration in [0, 1000, 9000, 600_000, 10_000_000, 10_000_000_000] {
            let mut thread = Thread::default();
            thread.read_often(3000, Reads { duration, ..DISK });
            assert_eq!(thread.polls, 0, "{duration}");
        }
    }

    #[test]
    fn the_budget_follows_the_device() {
        let mut thread = Thread::default();
        let slow = Reads { duration: 5_000_000, ..DISK };
        thread.read_often(1000, slow);
        assert_eq!(thread.polls, 0);
        thread.read_often(1000, DISK);
        let before = thread.polls;
        assert!(before > 300, "{before}");
        thread.read_often(1000, slow);
        assert!(thread.polls <= before + u64::from(STRETCH_READS));
    }

    #[test]
    fn work_between_reads_pays_for_little() {
        let mut thread = Thread::default();
        thread.read_often(1000, DISK);
        let before_ns = thread.extra_ns;
        thread.read(Reads { asleep: 3_600_000_000_000, ..DISK });
        thread.read_often(2000, DISK);
        let extra_ns = thread.extra_ns - before_ns;
        assert!(extra_ns <= 2000 * DISK.asleep / 2 + CREDIT_NS_MAX as u64, "{extra_ns}");
    }

    #[test]
    fn threads_poll_at_the_same_time() {
        const THREADS: usize = 4;
        const MOMENT_NS: u64 = 200_000;
        let mut polling = vec![0; 10_000];
        for number in 0..THREADS as u64 {
            let mut thread = Thread { now_ns: number * 1000, ..Thread::default() };
            while thread.now_ns < polling.len() as u64 * MOMENT_NS {
                let moment = thread.now_ns / MOMENT_NS;
                polling[moment as usize] +=
                    usize::from(thread.read(Reads { duration: 150_000 + number * 5000, ..DISK }));
            }
        }
        let some = polling.iter().filter(|&&threads| threads > 0).count();
        let many = polling.iter().filter(|&&threads| threads >= THREADS - 1).count();
        assert!(some > 3000 && many * 10 > some * 8, "{many} of {some}");
    }
}
