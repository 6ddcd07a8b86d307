//! A batch of reads, or a single one, by io_uring, straight into the caller's buffers.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use super::alignment::Span;
use super::file_handle::FileHandle;
use super::open_file::{OpenFile, check_range};
use super::ring::{Ring, Users};
use crate::{AlignedBuffer, Operation, ReadRequest};

/// Maximum number of reads in flight; further requests wait. Devices of this kind reach their full rate at 32–64.
const DEPTH: usize = 128;

/// How many completions to wait for while there are more requests: few enough to keep the device busy, enough to
/// share the cost of the system call.
const REFILL: usize = DEPTH / 4;

thread_local! {
    static RING: RefCell<Option<Ring>> = const { RefCell::new(None) };
}

/// Performs all reads through the ring of this thread. While it can start none, it calls `wait` with the number of
/// completions that it needs; `wait` may return earlier. Returns `false`, with nothing done, if there is no ring.
pub(super) fn read_batch(requests: &mut [ReadRequest<'_>], wait: impl FnMut(&mut Ring, usize)) -> bool {
    RING.try_with(|ring| {
        let Ok(mut ring) = ring.try_borrow_mut() else { return false };
        if ring.is_none() {
            *ring = Ring::new(DEPTH, Users::OneThread).ok();
        }
        let Some(ring) = &mut *ring else { return false };
        Batch { ring }.run(requests, wait);
        true
    })
    .unwrap_or(false)
}

/// Waits for every read in flight when dropped, so that even after a panic the kernel never writes into buffers that
/// have returned to their owner.
struct Batch<'a> {
    ring: &'a mut Ring,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        while self.ring.in_flight() > 0 {
            self.ring.enter(self.ring.in_flight());
            while self.ring.next().is_some() {}
        }
    }
}

/// What a read in flight needs besides its request.
struct Flight {
    /// The file, which stays open meanwhile.
    file: Arc<OpenFile>,
    /// A bounce buffer, when the request is not aligned.
    bounce: Option<(Span, AlignedBuffer)>,
}

impl Batch<'_> {
    fn run(&mut self, requests: &mut [ReadRequest<'_>], mut wait: impl FnMut(&mut Ring, usize)) {
        // Declared before the loop, and outliving every read in flight even if the loop panics: then they are leaked,
        // since `self` is dropped (and waits) only after the locals of this function.
        let mut flights: ManuallyDrop<Vec<Option<Flight>>> = ManuallyDrop::new(Vec::new());
        flights.resize_with(requests.len(), || None);
        let mut next = 0;
        while next < requests.len() || self.ring.in_flight() > 0 {
            while next < requests.len() && !self.ring.is_full() {
                self.start(next, &mut requests[next], &mut flights[next]);
                next += 1;
            }
            let in_flight = self.ring.in_flight();
            let wanted = if next < requests.len() { REFILL.min(in_flight) } else { in_flight };
            wait(self.ring, wanted);
            while let Some((token, outcome)) = self.ring.next() {
                let index = token as usize;
                finish(&mut requests[index], flights[index].take(), outcome);
            }
        }
        drop(ManuallyDrop::into_inner(flights));
    }

    /// Starts one read, or performs it at once where the ring has no advantage.
    fn start(&mut self, index: usize, request: &mut ReadRequest<'_>, flight: &mut Option<Flight>) {
        let len = request.buffer.len();
        let (Some(handle), true) = (handle_of(request), len > 0 && check_range(len, request.offset).is_ok())
        else {
            read_plainly(request);
            return;
        };
        let file = match handle.shared_file() {
            Ok(file) => file,
            Err(error) => {
                request.result = Err(error);
                return;
            }
        };
        let alignment = file.alignment();
        let flight = flight.insert(Flight { file, bounce: None });
        let (pointer, len, offset) = match alignment {
            Some(alignment) if !alignment.allows(request.buffer.as_ptr(), len, request.offset) => {
                let Some(span) = Span::around(request.offset, len, alignment.offset) else {
                    read_plainly(request);
                    return;
                };
                let (_, memory) = flight.bounce.insert((span, AlignedBuffer::with_len(span.len)));
                (memory.as_mut_ptr(), span.len, span.start)
            }
            _ => (request.buffer.as_mut_ptr(), len, request.offset),
        };
        // SAFETY: `run` does not return before the completion, and neither touches the request's buffer nor drops
        // the flight, which owns file and bounce buffer, until then; `Batch::drop` upholds the same in a panic.
        unsafe { self.ring.push(Operation::Read, &flight.file.file, pointer, len, offset, index as u64) };
    }
}

/// The file, if it is one of ours.
fn handle_of<'a>(request: &ReadRequest<'a>) -> Option<&'a FileHandle> {
    request.file.as_any().and_then(|any| any.downcast_ref())
}

/// Reads without the ring.
fn read_plainly(request: &mut ReadRequest<'_>) {
    request.result = match handle_of(request).map(FileHandle::shared_file) {
        Some(file) => file.and_then(|file| file.read(request.buffer, request.offset)),
        None => request.file.read_at(request.buffer, request.offset),
    };
}

fn finish(request: &mut ReadRequest<'_>, flight: Option<Flight>, outcome: i32) {
    let (Some(Flight { file, bounce }), Ok(got)) = (flight, usize::try_from(outcome)) else {
        // Retried by the plain call, which turns off direct I/O where it is refused, and says where it failed.
        read_plainly(request);
        return;
    };
    request.result = match bounce {
        None => file.read_rest(request.buffer, request.offset, got),
        Some((span, mut memory)) => file.read_rest(&mut memory, span.start, got).map(|got| {
            let usable = span.usable(got, request.buffer.len());
            request.buffer[..usable].copy_from_slice(&memory[span.skip..span.skip + usable]);
            usable
        }),
    };
}
