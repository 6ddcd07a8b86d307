//! A pipeline of reads and writes over an io_uring of its own.

use std::collections::VecDeque;
use std::fmt;
use std::io::Result;
use std::sync::Arc;

use super::alignment::Span;
use super::file_handle::FileHandle;
use super::open_file::{OpenFile, check_range};
use super::ring::{Ring, Users};
use crate::pipeline::{Completed, Operation, Pipeline};
use crate::{AlignedBuffer, File};

/// Queued operations go to the kernel together once there are this many: a system call for each would cost more than a
/// read of one page, and a longer wait would starve the device.
const QUEUED_MAX: usize = 8;
/// Operations of at least this length go to the kernel at once.
const LARGE_BYTES: usize = 64 << 10;

/// The operations of one [`RingPipeline`] in flight own their file and buffers here, at stable heap addresses.
struct Slot {
    operation: Operation,
    handle: FileHandle,
    file: Arc<OpenFile>,
    buffer: AlignedBuffer,
    bounce: Option<(Span, AlignedBuffer)>,
    offset: u64,
    token: u64,
}

pub(super) struct RingPipeline {
    ring: Ring,
    /// Indexed by the ring's token; `Some` while the operation is in flight.
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    done: VecDeque<Completed>,
}

impl RingPipeline {
    pub(super) fn new(depth: usize) -> Result<Self> {
        let ring = Ring::new(depth, Users::OneAtATime)?;
        let mut slots = Vec::new();
        slots.resize_with(depth, || None);
        Ok(Self { ring, slots, free: (0..depth).collect(), done: VecDeque::new() })
    }

    fn reap(&mut self) {
        while let Some((index, outcome)) = self.ring.next() {
            let index = index as usize;
            if let Some(slot) = self.slots[index].take() {
                self.done.push_back(slot.complete(outcome));
            }
            self.free.push(index);
        }
    }
}

impl Slot {
    fn complete(mut self, outcome: i32) -> Completed {
        let result = match (usize::try_from(outcome), self.bounce) {
            // Retried by the plain call, which turns off direct I/O where it is refused, and says where it failed.
            (Err(_), _) => self.operation.perform(&self.handle, &mut self.buffer, self.offset),
            (Ok(written), _) if self.operation == Operation::Write => {
                let rest = written.min(self.buffer.len())..;
                let start = self.offset + rest.start as u64;
                let outcome = if self.buffer[rest.clone()].is_empty() {
                    Ok(())
                } else {
                    self.handle.write_at(&self.buffer[rest], start)
                };
                outcome.map(|()| self.buffer.len())
            }
            (Ok(got), None) => self.file.read_rest(&mut self.buffer, self.offset, got),
            (Ok(got), Some((span, mut memory))) => {
                self.file.read_rest(&mut memory, span.start, got).map(|got| {
                    let usable = span.usable(got, self.buffer.len());
                    self.buffer[..usable].copy_from_slice(&memory[span.skip..span.skip + usable]);
                    usable
                })
            }
        };
        Completed { token: self.token, buffer: self.buffer, result }
    }
}

impl Pipeline for RingPipeline {
    fn submit(
        &mut self,
        operation: Operation,
        file: &dyn File,
        offset: u64,
        mut buffer: AlignedBuffer,
        token: u64,
    ) {
        let len = buffer.len();
        let handle = file.as_any().and_then(|any| any.downcast_ref::<FileHandle>());
        let open = handle.map(|handle| handle.shared_file().map(|file| (handle, file)));
        let open = match open.transpose() {
            Ok(open) => open,
            Err(error) => {
                self.done.push_back(Completed { token, buffer, result: Err(error) });
                return;
            }
        };
        let ready = |(_, file): &(&FileHandle, Arc<OpenFile>)| match (operation, file.alignment()) {
            (Operation::Write, Some(alignment)) => alignment.allows(buffer.as_ptr(), len, offset),
            _ => true,
        };
        let (Some((handle, file)), true) = (open.filter(ready), len > 0 && check_range(len, offset).is_ok())
        else {
            let result = operation.perform(file, &mut buffer, offset);
            self.done.push_back(Completed { token, buffer, result });
            return;
        };
        let index = loop {
            match self.free.pop() {
                Some(index) => break index,
                None => {
                    self.ring.enter(1);
                    self.reap();
                }
            }
        };
        let bounce = file
            .alignment()
            .filter(|alignment| !alignment.allows(buffer.as_ptr(), len, offset))
            .and_then(|alignment| Span::around(offset, len, alignment.offset))
            .map(|span| (span, AlignedBuffer::with_len(span.len)));
        let slot = self.slots[index].insert(Slot {
            operation,
            handle: handle.clone(),
            file,
            buffer,
            bounce,
            offset,
            token,
        });
        let (pointer, len, start) = match &mut slot.bounce {
            Some((span, memory)) => (memory.as_mut_ptr(), span.len, span.start),
            None => (slot.buffer.as_mut_ptr(), len, offset),
        };
        // SAFETY: the slot owns the file and the heap memory behind `pointer`, and is emptied only by `reap`, after
        // the completion; `drop` waits for all completions, and a forgotten pipeline leaks its slots with the ring.
        unsafe { self.ring.push(operation, &slot.file.file, pointer, len, start, index as u64) };
        if len >= LARGE_BYTES || self.ring.queued() >= QUEUED_MAX {
            self.ring.enter(0);
        }
    }

    fn start(&mut self) {
        if self.ring.queued() > 0 {
            self.ring.enter(0);
        }
    }

    fn wait(&mut self) -> Option<Completed> {
        loop {
            if let Some(done) = self.done.pop_front() {
                return Some(done);
            }
            if self.ring.in_flight() == 0 {
                return None;
            }
            self.reap();
            if self.done.is_empty() {
                self.ring.enter(1);
                self.reap();
            }
        }
    }

    fn poll(&mut self) -> Option<Completed> {
        if self.done.is_empty() && self.ring.in_flight() > 0 {
            if self.ring.wants_entry() {
                self.ring.enter(0);
            }
            self.reap();
        }
        self.done.pop_front()
    }

    fn pending(&self) -> usize {
        self.ring.in_flight() + self.done.len()
    }
}

impl Drop for RingPipeline {
    fn drop(&mut self) {
        while self.ring.in_flight() > 0 {
            self.ring.enter(self.ring.in_flight());
            while self.ring.next().is_some() {}
        }
    }
}

impl fmt::Debug for RingPipeline {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RingPipeline")
            .field("in_flight", &self.ring.in_flight())
            .field("done", &self.done.len())
            .finish_non_exhaustive()
    }
}
