//! Reads during which a thread polls: always, or where [`ReadWait::Adapt`] finds it cheap.

use std::cell::RefCell;
use std::io::Result;
use std::time::{Duration, Instant};

use super::file_handle::FileHandle;
use super::open_file::OpenFile;
use super::options::ReadWait;
use super::poll_budget::PollBudget;
use super::poll_pause::PollPause;
use super::ring::Ring;
use super::ring_batch::read_batch;
use super::thread_time::cpu_time_ns;
use crate::ReadRequest;
use crate::sync::thread;

/// How long a thread that yields its processor waits for it at least if another one computes there. Threads that only
/// read take a few microseconds each.
const FOREIGN_WORK: Duration = Duration::from_millis(1);

thread_local! {
    static BUDGET: RefCell<PollBudget> = RefCell::default();
}

/// Waits for `wanted` completions and polls meanwhile, for as long as it takes.
pub(super) fn poll(ring: &mut Ring, wanted: usize) {
    ring.poll(wanted, || {
        thread::yield_now();
        true
    });
}

/// Reads in the way that is set for the file.
pub(super) fn read(handle: &FileHandle, file: &OpenFile, buffer: &mut [u8], offset: u64) -> Result<usize> {
    match file.read_wait() {
        ReadWait::Sleep => file.read(buffer, offset),
        ReadWait::Poll => read_by_ring(handle, file, buffer, offset, poll),
        ReadWait::Adapt => read_adaptively(handle, file, buffer, offset),
    }
}

/// Reads through the ring of this thread if it can have one, otherwise by a plain call.
fn read_by_ring(
    handle: &FileHandle,
    file: &OpenFile,
    buffer: &mut [u8],
    offset: u64,
    wait: impl FnMut(&mut Ring, usize),
) -> Result<usize> {
    let mut request = ReadRequest { file: handle, offset, buffer, result: Ok(0) };
    match read_batch(std::slice::from_mut(&mut request), wait) {
        true => request.result,
        false => file.read(request.buffer, offset),
    }
}

fn read_adaptively(handle: &FileHandle, file: &OpenFile, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let pause = PollPause::of_process();
    let start = Instant::now();
    let limit = with_budget(|budget| {
        let now_ns = pause.time_ns(start);
        if budget.is_look_due(now_ns) {
            budget.look(now_ns, cpu_time_ns());
        }
        budget.limit().filter(|_| !pause.includes(now_ns))
    });
    let result = match limit.flatten() {
        None => file.read(buffer, offset),
        Some(limit) => read_by_ring(handle, file, buffer, offset, |ring, wanted| {
            ring.poll(wanted, || yield_until(start + limit, pause));
        }),
    };
    with_budget(|budget| budget.note_read(start.elapsed()));
    result
}

/// Calls `action` with the budget of this thread; `None` if the thread is ending and has none any more.
fn with_budget<T>(action: impl FnOnce(&mut PollBudget) -> T) -> Option<T> {
    BUDGET.try_with(|budget| action(&mut budget.borrow_mut())).ok()
}

/// Lets other threads run. Returns whether to continue polling: not after `end`, nor if another thread computes here.
fn yield_until(end: Instant, pause: &PollPause) -> bool {
    let before = Instant::now();
    thread::yield_now();
    let now = Instant::now();
    if now - before >= FOREIGN_WORK {
        pause.begin(now);
        return false;
    }
    now < end
}
