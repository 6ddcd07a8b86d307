//! Which threads run first when processors are scarce.

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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

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
