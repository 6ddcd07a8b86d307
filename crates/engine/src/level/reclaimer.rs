//! [`Reclaimer`]: gives the space of merged tables back to the file system, in the background.
//!
//! Otherwise the thread that drops a table last (a get, a put, a merge) would pay for its removal, which takes a file
//! system milliseconds.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use alluvium_base::PrefixFunction;
use alluvium_io::Storage;
use alluvium_io::sync::{Condvar, Mutex, MutexGuard};

use super::open_tables::OpenTables;
use super::table_file::TableFile;
use crate::table::IndexMemory;

/// Removes files and punches holes: at once, or in a thread of its own while [`Reclaimer::defer`] demands that.
#[derive(Debug)]
pub(crate) struct Reclaimer {
    storage: Arc<dyn Storage>,
    /// The memory of the filters and indexes of all tables.
    index_memory: Arc<IndexMemory>,
    /// The functions that find prefixes, for tables whose directories name them.
    prefix_functions: Vec<PrefixFunction>,
    /// The table files in use.
    open_tables: OpenTables,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    deferred: bool,
    is_ended: bool,
    /// Waiting jobs are done without a pause.
    is_stopping: bool,
}

#[derive(Debug)]
pub(super) enum Job {
    Remove { name: String },
    Punch { file: Arc<TableFile>, offset: u64, len: u64 },
}

impl Reclaimer {
    pub fn new(storage: Arc<dyn Storage>, prefix_functions: Vec<PrefixFunction>) -> Arc<Self> {
        Arc::new(Self {
            storage,
            index_memory: Arc::default(),
            prefix_functions,
            open_tables: OpenTables::default(),
            queue: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    pub(super) fn open_tables(&self) -> &OpenTables {
        &self.open_tables
    }

    /// Drops the directories of table files that are kept for keyspaces that are not open yet.
    pub fn drop_directories(&self) {
        self.open_tables.drop_directories();
    }

    pub fn prefix_functions(&self) -> &[PrefixFunction] {
        &self.prefix_functions
    }

    pub fn index_memory(&self) -> &Arc<IndexMemory> {
        &self.index_memory
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no panic while held")
    }

    /// If `deferred`, leaves jobs to [`Reclaimer::work`] from now on. Otherwise does the waiting jobs, and later ones
    /// at once.
    pub fn defer(&self, deferred: bool) {
        self.queue().deferred = deferred;
        self.changed.notify_all();
        if !deferred {
            self.drain();
        }
    }

    /// Does the waiting jobs and ignores later ones: from then on the files may belong to another opening.
    pub fn end(&self) {
        self.defer(false);
        self.queue().is_ended = true;
    }

    /// Ends the wait of the thread that does the jobs, now and from then on.
    pub fn begin_stop(&self) {
        self.queue().is_stopping = true;
        self.changed.notify_all();
    }

    /// Removes a file, now or later.
    pub fn remove(&self, name: String) {
        self.submit(Job::Remove { name });
    }

    pub(super) fn submit(&self, job: Job) {
        let mut queue = self.queue();
        if queue.is_ended {
            return;
        }
        if queue.deferred {
            queue.jobs.push_back(job);
            self.changed.notify_one();
        } else {
            drop(queue);
            self.run(job);
        }
    }

    /// Does the waiting jobs.
    pub fn drain(&self) {
        loop {
            let Some(job) = self.queue().jobs.pop_front() else { return };
            self.run(job);
        }
    }

    /// Does the waiting jobs. Without any, first waits up to `pause` for one. Returns whether there was one.
    pub fn work(&self, pause: Duration) -> bool {
        let mut queue = self.queue();
        if queue.jobs.is_empty() && queue.deferred && !queue.is_stopping {
            queue = self.changed.wait_timeout(queue, pause).expect("no panic while held").0;
        }
        let is_needed = !queue.jobs.is_empty();
        drop(queue);
        self.drain();
        is_needed
    }

    /// Errors are ignored: space that cannot be freed now is freed at the next opening.
    fn run(&self, job: Job) {
        let _ = match job {
            Job::Remove { name } => self.storage.remove(&name),
            Job::Punch { file, offset, len } => file.punch_hole(offset, len),
        };
    }
}
