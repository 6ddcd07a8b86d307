//! How a [`FileStorage`](super::FileStorage) may reach the device.

/// Whether a mechanism of the operating system is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Usage {
    /// It is used wherever the system and the file system support it, which is found out by trying.
    #[default]
    Auto,
    /// Not at all.
    Never,
}

/// What a thread does until its read is done; see [`Storage::set_read_wait`](crate::Storage::set_read_wait).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadWait {
    /// It polls during some of its reads and sleeps during the others. A thread may use half as much processor time
    /// more than it would asleep, its own work included; it measures both. All threads poll at the same times, which
    /// keeps processors awake. They don't poll while other threads want the processors, during reads that take less
    /// than 10 µs (from a cache) or more than 500 µs (where waking is a small part), and during batches of reads. Costs
    /// two readings of the clock a read. Needs Linux and io_uring; without them threads sleep.
    #[default]
    Adapt,
    /// It sleeps. A processor with nothing else to do sleeps too, and takes some microseconds to wake (more under a
    /// hypervisor), which is a large part of a fast device's latency.
    Sleep,
    /// It polls, and lets other threads run between two polls. This gives the most reads per second with few threads; a
    /// waiting thread keeps its processor busy, so it suits machines that have one to spare. Needs io_uring; without it
    /// threads sleep.
    Poll,
}

/// Options of [`FileStorage::open`](super::FileStorage::open). The default is right for most; `direct` and `uring`
/// exist for measuring and for systems where a mechanism misbehaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoOptions {
    /// Direct I/O (`O_DIRECT`): reads and writes bypass the page cache, so that memory is owned and counted in one
    /// place. Without it, the kernel caches what it likes and its memory is not in the budget.
    pub direct: Usage,
    /// io_uring for batches and pipelines of reads. Without it (or where it is forbidden, as in many containers) a
    /// pool of threads reads.
    pub uring: Usage,
    /// Approximate number of files of the directory that are open for reading at a time: the others are opened when
    /// they are used. Files that are written are open in addition. `None` reserves 64 of the descriptors that the
    /// process may have when the directory is opened, and takes half of the others: at least 16, at most 65,536.
    pub open_files_max: Option<usize>,
}
