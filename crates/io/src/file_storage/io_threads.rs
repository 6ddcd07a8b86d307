//! Operations in flight without io_uring: a few threads that read and write.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, PoisonError};

use super::file_handle::FileHandle;
use crate::pipeline::{Completed, Operation, Pipeline};
use crate::sync::mpsc::{Receiver, Sender, channel};
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::{AlignedBuffer, File, ReadRequest};

/// Maximum number of threads, and so of operations in flight. They sleep in the kernel and are started as needed.
const THREADS_MAX: usize = 32;

/// 128 KiB hold an operation's stack many times over.
const STACK_BYTES: usize = 128 << 10;

struct Job {
    operation: Operation,
    handle: FileHandle,
    offset: u64,
    buffer: AlignedBuffer,
    token: u64,
    reply: Sender<Completed>,
}

impl Job {
    fn run(self) {
        let Self { operation, handle, offset, mut buffer, token, reply } = self;
        let result = operation.perform(&handle, &mut buffer, offset);
        // First: after the report the last other handle may go, and then no descriptor is to stay open.
        drop(handle);
        // The pipeline may be gone by now; then nothing needs the outcome.
        let _ = reply.send(Completed { token, buffer, result });
    }
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: usize,
    closed: bool,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    wake: Condvar,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of one thread: until the pool is dropped.
    fn serve(&self) {
        let mut state = self.state();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job.run();
                state = self.state();
            } else if state.closed {
                return;
            } else {
                state.idle += 1;
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
            }
        }
    }
}

/// The threads of one storage. They end when it is dropped and their jobs are done.
#[derive(Default)]
pub(super) struct IoThreads {
    queue: Arc<Queue>,
}

impl IoThreads {
    fn submit(&self, job: Job) {
        let mut state = self.queue.state();
        state.jobs.push_back(job);
        if state.idle < state.jobs.len() && state.threads < THREADS_MAX {
            let queue = Arc::clone(&self.queue);
            let thread = crate::sync::thread::Builder::new()
                .name("alluvium-io".to_owned())
                .stack_size(STACK_BYTES)
                .spawn(move || queue.serve());
            match thread {
                Ok(_) => state.threads += 1,
                Err(_) if state.threads == 0 => {
                    // No thread can be started: run the job here.
                    let job = state.jobs.pop_back();
                    drop(state);
                    return job.into_iter().for_each(Job::run);
                }
                Err(_) => {}
            }
        }
        drop(state);
        self.queue.wake.notify_one();
    }

    /// Performs all reads, through the pool's own buffers: the copy (0.1 µs a page) avoids borrowed lifetimes.
    pub(super) fn read_batch(self: &Arc<Self>, requests: &mut [ReadRequest<'_>]) {
        let mut pipeline = ThreadPipeline::new(Arc::clone(self), requests.len());
        for (index, request) in requests.iter().enumerate() {
            pipeline.submit(
                Operation::Read,
                request.file,
                request.offset,
                AlignedBuffer::with_len(request.buffer.len()),
                index as u64,
            );
        }
        while let Some(done) = pipeline.wait() {
            let request = &mut requests[done.token as usize];
            if let Ok(got) = done.result {
                request.buffer[..got].copy_from_slice(&done.buffer[..got]);
            }
            request.result = done.result;
        }
    }
}

impl Drop for IoThreads {
    fn drop(&mut self) {
        self.queue.state().closed = true;
        self.queue.wake.notify_all();
    }
}

impl fmt::Debug for IoThreads {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("IoThreads").field("threads", &self.queue.state().threads).finish_non_exhaustive()
    }
}

/// A pipeline over [`IoThreads`].
#[derive(Debug)]
pub(super) struct ThreadPipeline {
    threads: Arc<IoThreads>,
    depth: usize,
    reply: Sender<Completed>,
    completions: Receiver<Completed>,
    /// Number of operations that the threads have.
    in_flight: usize,
    /// Completed operations that the caller has not taken yet.
    done: VecDeque<Completed>,
}

impl ThreadPipeline {
    pub(super) fn new(threads: Arc<IoThreads>, depth: usize) -> Self {
        let (reply, completions) = channel();
        Self { threads, depth: depth.max(1), reply, completions, in_flight: 0, done: VecDeque::new() }
    }

    fn receive(&mut self) -> Option<Completed> {
        if self.in_flight == 0 {
            return None;
        }
        // `self.reply` keeps the channel open, and each job in flight sends exactly once.
        let done = self.completions.recv().ok()?;
        self.in_flight -= 1;
        Some(done)
    }
}

impl Pipeline for ThreadPipeline {
    fn submit(
        &mut self,
        operation: Operation,
        file: &dyn File,
        offset: u64,
        mut buffer: AlignedBuffer,
        token: u64,
    ) {
        let Some(handle) = file.as_any().and_then(|any| any.downcast_ref::<FileHandle>()) else {
            let result = operation.perform(file, &mut buffer, offset);
            self.done.push_back(Completed { token, buffer, result });
            return;
        };
        if self.in_flight == self.depth
            && let Some(done) = self.receive()
        {
            self.done.push_back(done);
        }
        self.in_flight += 1;
        let reply = self.reply.clone();
        self.threads.submit(Job { operation, handle: handle.clone(), offset, buffer, token, reply });
    }

    fn start(&mut self) {}

    fn wait(&mut self) -> Option<Completed> {
        self.done.pop_front().or_else(|| self.receive())
    }

    fn poll(&mut self) -> Option<Completed> {
        self.done.pop_front().or_else(|| {
            let done = self.completions.try_recv().ok()?;
            self.in_flight -= 1;
            Some(done)
        })
    }

    fn pending(&self) -> usize {
        self.in_flight + self.done.len()
    }
}

impl Drop for ThreadPipeline {
    fn drop(&mut self) {
        while self.receive().is_some() {}
    }
}
