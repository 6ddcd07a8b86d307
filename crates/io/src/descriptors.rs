//! The limit on open files.

/// Raises the process's soft limit of open files to its hard limit, once and for all, and returns the limit in force
/// afterwards. Returns `None` if there is no such limit or the system does not report it.
///
/// The soft limit is low for the sake of programs that use `select`, which can't watch descriptors from 1024 on; a
/// program that does should lower it again. Nothing is charged for a limit that is not used.
pub fn raise_descriptor_limit() -> Option<u64> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        if limit.current < limit.maximum || (limit.current.is_some() && limit.maximum.is_none()) {
            let before = limit.current;
            limit.current = limit.maximum;
            // If the system refuses, the previous limit stays in force.
            if setrlimit(Resource::Nofile, limit).is_err() {
                return before;
            }
        }
        limit.current
    }
    #[cfg(not(unix))]
    None
}

#[cfg(all(test, unix))]
mod tests {
    #[test]
    fn the_limit_is_the_hard_one_then() {
        use rustix::process::{Resource, getrlimit};
        let raised = super::raise_descriptor_limit();
        assert_eq!(raised, getrlimit(Resource::Nofile).maximum);
        assert_eq!(super::raise_descriptor_limit(), raised);
    }
}
