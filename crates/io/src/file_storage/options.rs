//! How a [`FileStorage`](super::FileStorage) may reach the device.

/// Whether a mechanism of the operating system is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Usage {
    /// Wherever the system and the file system offer it, found out by trying.
    #[default]
    Auto,
    /// Not at all.
    Never,
}

/// Options of [`FileStorage::open`](super::FileStorage::open). The default is right for most; both switches exist for
/// measuring and for systems where a mechanism misbehaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoOptions {
    /// Direct I/O (`O_DIRECT`): reads and writes bypass the page cache, so that memory is owned and counted in one
    /// place. Without it, the kernel caches what it likes and its memory is not in the budget.
    pub direct: Usage,
    /// io_uring for batches and pipelines of reads. Without it (or where it is forbidden, as in many containers) a
    /// pool of threads reads.
    pub uring: Usage,
}
