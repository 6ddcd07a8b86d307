//! [`Processor`]: the one that all threads of an execution share.

/// The processor of an execution. One of its threads runs at a time, so they lose nothing by sharing a processor; and
/// the thread that gets the baton runs at once there, where another processor would have to be woken first.
#[derive(Debug)]
pub(super) struct Processor {
    /// `None` where the system does not say which processors there are.
    number: Option<usize>,
}

#[cfg(target_os = "linux")]
mod on_linux {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::Processor;

    /// Numbers of executions of this process on each processor.
    static EXECUTIONS: Mutex<[u32; CpuSet::MAX_CPU]> = Mutex::new([0; CpuSet::MAX_CPU]);

    fn executions() -> MutexGuard<'static, [u32; CpuSet::MAX_CPU]> {
        EXECUTIONS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    impl Processor {
        /// Of those on which the calling thread may run, the one with the fewest executions of this process.
        pub fn with_fewest() -> Self {
            let Ok(allowed) = sched_getaffinity(None) else { return Self { number: None } };
            let mut executions = executions();
            let numbers = (0..CpuSet::MAX_CPU).filter(|&number| allowed.is_set(number));
            let number = numbers.min_by_key(|&number| executions[number]);
            if let Some(number) = number {
                executions[number] += 1;
            }
            Self { number }
        }

        /// Keeps the thread that calls the result, and those that it starts from then on, on this processor. A
        /// refusal is ignored: it changes only how long the execution takes.
        pub fn keeper(&self) -> impl FnOnce() + Send + use<> {
            let number = self.number;
            move || {
                let Some(number) = number else { return };
                let mut only = CpuSet::new();
                only.set(number);
                let _ = sched_setaffinity(None, &only);
            }
        }
    }

    impl Drop for Processor {
        fn drop(&mut self) {
            if let Some(number) = self.number {
                executions()[number] -= 1;
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Processor {
    pub fn with_fewest() -> Self {
        Self { number: None }
    }

    pub fn keeper(&self) -> impl FnOnce() + Send + use<> {
        || ()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::{Options, run, thread};
    use rustix::thread::{CpuSet, sched_getaffinity};

    fn allowed() -> CpuSet {
        sched_getaffinity(None).unwrap()
    }

    #[test]
    fn threads_of_an_execution_share_a_processor() {
        let before = allowed();
        let body = || [allowed(), thread::spawn(allowed).join().unwrap()];
        let [root, started] = run(Options { seed: 1, steps_max: 1_000 }, body).unwrap().result;
        assert_eq!(root, started);
        // One, unless the system refused.
        assert!(root.count() == 1 || root == before, "{root:?} of {before:?}");
        assert_eq!(allowed(), before, "the thread that waits for the execution is not confined");
    }
}
