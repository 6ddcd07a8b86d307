//! Reads that overlap with whatever the caller does between them.
//!
//! [`Storage::read_batch`](crate::Storage::read_batch) waits for its slowest read while the device idles; a pipeline
//! lets the caller submit the next read as soon as one is done, and so keeps the device at its full rate. It owns the
//! buffers in flight, so that no misuse can make the device write into freed memory.

use std::collections::VecDeque;
use std::fmt;
use std::io::Result;

use crate::{AlignedBuffer, File};

/// A stream of reads, used by one thread. Made by [`Storage::read_pipeline`](crate::Storage::read_pipeline).
///
/// Completions come in no order; `token` tells them apart. Dropping a pipeline waits for its reads in flight and
/// discards them.
pub trait ReadPipeline: fmt::Debug {
    /// Starts a read that fills `buffer` (all of its length) from `offset` of `file`, which was opened by the storage
    /// that made the pipeline. Alignment as in [`File::read_at`].
    ///
    /// When `depth` reads are already in flight, one of them is completed first and kept for
    /// [`ReadPipeline::wait`]. Reads may be held back until the next `wait` or `poll`, so that several start with one
    /// system call.
    fn submit(&mut self, file: &dyn File, offset: u64, buffer: AlignedBuffer, token: u64);

    /// The next completed read; blocks until there is one. `None` when no read is in flight or waiting to be taken.
    fn wait(&mut self) -> Option<CompletedRead>;

    /// A read that is complete by now, without blocking.
    fn poll(&mut self) -> Option<CompletedRead>;

    /// Reads submitted and not yet returned by `wait` or `poll`.
    fn pending(&self) -> usize;
}

/// One finished read of a [`ReadPipeline`].
#[derive(Debug)]
pub struct CompletedRead {
    /// The token it was submitted with.
    pub token: u64,
    /// The buffer it was submitted with; the first `result` bytes come from the file.
    pub buffer: AlignedBuffer,
    /// The outcome, as [`File::read_at`] would return it.
    pub result: Result<usize>,
}

/// The pipeline of storages that have no asynchronous reads: each read happens in `submit`.
#[derive(Debug, Default)]
pub(crate) struct ImmediateReads {
    done: VecDeque<CompletedRead>,
}

impl ReadPipeline for ImmediateReads {
    fn submit(&mut self, file: &dyn File, offset: u64, mut buffer: AlignedBuffer, token: u64) {
        let result = file.read_at(&mut buffer, offset);
        self.done.push_back(CompletedRead { token, buffer, result });
    }

    fn wait(&mut self) -> Option<CompletedRead> {
        self.done.pop_front()
    }

    fn poll(&mut self) -> Option<CompletedRead> {
        self.done.pop_front()
    }

    fn pending(&self) -> usize {
        self.done.len()
    }
}
