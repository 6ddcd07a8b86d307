//! Reads and writes that overlap with whatever the caller does between them.
//!
//! [`Storage::read_batch`](crate::Storage::read_batch) waits for its slowest read while the device idles; a pipeline
//! lets the caller submit the next operation as soon as one is done, and so keeps the device at its full rate. It owns
//! the buffers in flight, so that no misuse can make the device write into freed memory.

use std::collections::VecDeque;
use std::fmt;
use std::io::Result;

use crate::{AlignedBuffer, File};

/// What an operation of a [`Pipeline`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Fills the buffer (all of its length) from the file, as [`File::read_at`].
    Read,
    /// Writes the buffer to the file, as [`File::write_at`].
    Write,
}

/// A stream of reads and writes, used by one thread at a time. Made by [`Storage::pipeline`](crate::Storage::pipeline).
///
/// Completions come in any order; `token` identifies them. Operations on the same bytes of a file must not be in flight
/// together, and while a write is in flight, it must not share a page with an unaligned write made elsewhere. Dropping
/// a pipeline waits for its operations in flight and discards their outcome.
pub trait Pipeline: fmt::Debug + Send {
    /// Starts an operation at `offset` of `file`, which was opened by the storage that made the pipeline. Alignment as
    /// in [`File::read_at`].
    ///
    /// When `depth` operations are already in flight, one of them is completed first and kept for
    /// [`Pipeline::wait`]. Small operations may be held back until the next `wait` or `poll`, so that several start
    /// with one system call.
    fn submit(
        &mut self,
        operation: Operation,
        file: &dyn File,
        offset: u64,
        buffer: AlignedBuffer,
        token: u64,
    );

    /// Starts the operations that are held back.
    fn start(&mut self);

    /// Returns the next completed operation; blocks until there is one. `None` if none is in flight or waiting to be
    /// taken.
    fn wait(&mut self) -> Option<Completed>;

    /// Returns an operation that is complete by now, without blocking.
    fn poll(&mut self) -> Option<Completed>;

    /// Operations submitted and not yet returned by `wait` or `poll`.
    fn pending(&self) -> usize;
}

/// One finished operation of a [`Pipeline`].
#[derive(Debug)]
pub struct Completed {
    /// The token it was submitted with.
    pub token: u64,
    /// The buffer it was submitted with; after a read the first `result` bytes come from the file.
    pub buffer: AlignedBuffer,
    /// The outcome: bytes read, as [`File::read_at`] would return it, or the bytes written, all of the buffer.
    pub result: Result<usize>,
}

impl Operation {
    /// Performs the operation now.
    pub(crate) fn perform(self, file: &dyn File, buffer: &mut AlignedBuffer, offset: u64) -> Result<usize> {
        match self {
            Operation::Read => file.read_at(buffer, offset),
            Operation::Write => file.write_at(buffer, offset).map(|()| buffer.len()),
        }
    }
}

/// The pipeline of storages that do nothing asynchronously: each operation happens in `submit`.
#[derive(Debug, Default)]
pub(crate) struct Immediate {
    done: VecDeque<Completed>,
}

impl Pipeline for Immediate {
    fn submit(
        &mut self,
        operation: Operation,
        file: &dyn File,
        offset: u64,
        mut buffer: AlignedBuffer,
        token: u64,
    ) {
        let result = operation.perform(file, &mut buffer, offset);
        self.done.push_back(Completed { token, buffer, result });
    }

    fn start(&mut self) {}

    fn wait(&mut self) -> Option<Completed> {
        self.done.pop_front()
    }

    fn poll(&mut self) -> Option<Completed> {
        self.done.pop_front()
    }

    fn pending(&self) -> usize {
        self.done.len()
    }
}
