//! One io_uring: the only module that hands memory to the kernel.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;

use io_uring::{IoUring, Probe, opcode, types};

use crate::pipeline::Operation;
use crate::sync::atomic::{AtomicU8, Ordering};

/// A ring of reads and writes, used by the one thread that made it.
///
/// Invariant: `in_flight` operations are queued or with the kernel, and their completions have not been taken.
pub(super) struct Ring {
    uring: IoUring,
    in_flight: usize,
    depth: usize,
}

/// Maximum number of bytes of one operation; the kernel cuts longer ones short.
const BYTES_MAX: usize = 1 << 30;

/// How often a waiting thread polls for a completion before it lets other threads run: the polls take about as long as
/// that.
const LOOKS: u32 = 32;

const UNKNOWN: u8 = 0;
const AVAILABLE: u8 = 1;
const REFUSED: u8 = 2;

/// What the first attempt of this process found. Containers forbid io_uring permanently, so trying again in every
/// thread would only cost time.
static AVAILABILITY: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Whether this process may use io_uring. The first call tries it.
pub(super) fn is_available() -> bool {
    match AVAILABILITY.load(Ordering::Relaxed) {
        UNKNOWN => Ring::new(1, Users::OneThread).is_ok(),
        known => known == AVAILABLE,
    }
}

/// The threads that may use a ring.
#[derive(Clone, Copy, Debug)]
pub(super) enum Users {
    /// Only the thread that made it; the kernel refuses others.
    OneThread,
    /// Any thread, one at a time.
    OneAtATime,
}

impl Ring {
    /// A ring for `depth` operations at once, of `users`.
    ///
    /// # Errors
    /// `Unsupported` where io_uring is missing, forbidden or too old; other errors (no memory, no descriptors) may
    /// pass.
    pub(super) fn new(depth: usize, users: Users) -> Result<Self> {
        if AVAILABILITY.load(Ordering::Relaxed) == REFUSED {
            return Err(ErrorKind::Unsupported.into());
        }
        let built = Self::build(depth, users);
        match &built {
            Ok(_) => AVAILABILITY.store(AVAILABLE, Ordering::Relaxed),
            // ENOSYS, EPERM or EACCES: the system refuses permanently.
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) => {
                AVAILABILITY.store(REFUSED, Ordering::Relaxed);
            }
            Err(_) => {}
        }
        built
    }

    fn build(depth: usize, users: Users) -> Result<Self> {
        let entries = u32::try_from(depth.clamp(1, 4096)).map_err(|_| ErrorKind::InvalidInput)?;
        // Completions run when a thread asks for them and do not interrupt it: fully so with one issuer (6.1),
        // otherwise when the thread enters the kernel anyway (5.19). Older kernels refuse the flags with EINVAL and
        // work without them.
        let mut builder = IoUring::builder();
        match users {
            Users::OneThread => builder.setup_single_issuer().setup_defer_taskrun(),
            Users::OneAtATime => builder.setup_coop_taskrun(),
        };
        let uring =
            builder.setup_taskrun_flag().dontfork().build(entries).or_else(|error| match error.kind() {
                ErrorKind::InvalidInput => IoUring::builder().dontfork().build(entries),
                _ => Err(error),
            })?;
        let mut probe = Probe::new();
        uring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::Read::CODE) || !probe.is_supported(opcode::Write::CODE) {
            return Err(ErrorKind::Unsupported.into());
        }
        Ok(Self { uring, in_flight: 0, depth: entries as usize })
    }

    /// Operations queued or with the kernel.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Whether no further operation can be pushed before one completes.
    pub(super) fn is_full(&self) -> bool {
        self.in_flight == self.depth
    }

    /// Operations pushed and not yet given to the kernel.
    pub(super) fn queued(&mut self) -> usize {
        self.uring.submission().len()
    }

    /// Whether the kernel has something to do that it does only when it is entered: queued operations to take, or
    /// completions to hand out.
    pub(super) fn wants_entry(&mut self) -> bool {
        let submission = self.uring.submission();
        !submission.is_empty() || submission.taskrun() || submission.cq_overflow()
    }

    /// Queues an operation on up to `len` bytes at `offset`; its completion will carry `token`.
    ///
    /// # Safety
    /// Until [`Ring::next`] has returned `token`, `pointer` stays valid for `len` bytes that nothing else accesses, and
    /// `file` stays open.
    ///
    /// # Panics
    /// When the ring is full.
    pub(super) unsafe fn push(
        &mut self,
        operation: Operation,
        file: &File,
        pointer: *mut u8,
        len: usize,
        offset: u64,
        token: u64,
    ) {
        assert!(!self.is_full(), "more operations than the ring holds");
        let len = len.min(BYTES_MAX) as u32;
        let descriptor = types::Fd(file.as_raw_fd());
        let entry = match operation {
            Operation::Read => opcode::Read::new(descriptor, pointer, len).offset(offset).build(),
            Operation::Write => opcode::Write::new(descriptor, pointer, len).offset(offset).build(),
        };
        let entry = entry.user_data(token);
        // SAFETY: descriptor and memory stay valid for the whole operation by the caller's promise.
        let pushed = unsafe { self.uring.submission().push(&entry) };
        // The queue has at least `depth` entries and the kernel empties it at every `enter`.
        assert!(pushed.is_ok(), "more operations than the submission queue holds");
        self.in_flight += 1;
    }

    /// Gives queued operations to the kernel and waits until `wanted` completions are there (at most those in flight).
    pub(super) fn enter(&mut self, wanted: usize) {
        let wanted = wanted.min(self.in_flight);
        match self.uring.submit_and_wait(wanted) {
            Ok(_) => {}
            Err(error) if is_passing(&error) => {
                if error.kind() != ErrorKind::Interrupted {
                    // The kernel is short of memory or of room for completions: let it catch up.
                    crate::sync::thread::yield_now();
                }
            }
            Err(error) => {
                // The kernel may still write into the buffers of operations in flight, and there is no way left to wait
                // for that: continuing would corrupt memory.
                eprintln!("io_uring_enter failed with operations in flight: {error}");
                std::process::abort();
            }
        }
    }

    /// Like [`Ring::enter`], but polls for completions instead of sleeping. Between some polls it calls `goes_on`,
    /// which lets other threads run; once that returns `false`, it sleeps.
    pub(super) fn poll(&mut self, wanted: usize, mut goes_on: impl FnMut() -> bool) {
        let wanted = wanted.min(self.in_flight);
        if self.queued() > 0 {
            self.enter(0);
        }
        let mut looks = 0_u32;
        loop {
            let ready = self.uring.completion().len();
            if ready >= wanted {
                return;
            }
            if self.wants_entry() {
                // One more is about to arrive; the kernel hands it out when asked.
                self.enter(ready + 1);
                continue;
            }
            looks = looks.wrapping_add(1);
            if !looks.is_multiple_of(LOOKS) {
                std::hint::spin_loop();
            } else if !goes_on() {
                return self.enter(wanted);
            }
        }
    }

    /// Returns a completion that has arrived: its token, and the bytes transferred or the negative error code.
    pub(super) fn next(&mut self) -> Option<(u64, i32)> {
        let entry = self.uring.completion().next()?;
        self.in_flight -= 1;
        Some((entry.user_data(), entry.result()))
    }
}

fn is_passing(error: &Error) -> bool {
    use rustix::io::Errno;
    error.kind() == ErrorKind::Interrupted
        || [Errno::AGAIN, Errno::BUSY, Errno::NOMEM]
            .iter()
            .any(|code| error.raw_os_error() == Some(code.raw_os_error()))
}
