//! Which threads run first when processors are scarce, and how soon a thread runs after a sleep.

/// Each step gives up a fifth: after five, a thread gets a third of the time of another thread that is ready to run.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;

/// Makes the calling thread give way to those that serve callers: while both have work, it gets a quarter of a
/// processor that they share, so its work takes longer but is never postponed forever. Works only where the system
/// gives threads priorities of their own, on Linux; a refusal is ignored.
pub fn give_way() {
    if crate::sync::is_simulated() {
        return; // the scheduler decides
    }
    #[cfg(target_os = "linux")]
    if rustix::process::getpriority_process(None).is_ok_and(|niceness| niceness < NICENESS) {
        let _ = rustix::process::setpriority_process(None, NICENESS);
    }
}

/// While it lives, timers of the calling thread are not postponed so that they end together with others. Works on
/// Linux; a refusal is ignored.
#[derive(Debug)]
pub(crate) struct PromptTimers {
    /// What the thread allowed before.
    #[cfg(target_os = "linux")]
    slack_ns: Option<std::num::NonZeroU64>,
}

impl PromptTimers {
    pub(crate) fn begin() -> Self {
        #[cfg(target_os = "linux")]
        {
            use std::num::NonZeroU64;
            let slack_ns = rustix::thread::current_timer_slack().ok().and_then(NonZeroU64::new);
            let is_set = rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).is_ok();
            Self { slack_ns: slack_ns.filter(|_| is_set) }
        }
        #[cfg(not(target_os = "linux"))]
        Self {}
    }
}

impl Drop for PromptTimers {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        if self.slack_ns.is_some() {
            let _ = rustix::thread::set_current_timer_slack(self.slack_ns);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn timers_are_prompt_only_for_a_time() {
        let slack = || rustix::thread::current_timer_slack().unwrap();
        let before = slack();
        let prompt = PromptTimers::begin();
        assert_eq!(slack(), 1);
        drop(prompt);
        assert_eq!(slack(), before);
    }

    #[test]
    fn only_the_calling_thread_gives_way() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let before = niceness();
        let given_way = std::thread::spawn(move || {
            give_way();
            niceness()
        });
        assert_eq!((given_way.join().unwrap(), niceness()), (before.max(NICENESS), before));
    }
}
