//! The system calls that differ between operating systems, each with what happens where it is missing.

use std::fs;
use std::io::Result;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};

use super::alignment::DirectAlignment;

/// Opens `name` below `directory`, buffered.
pub(super) fn open_buffered(directory: &OwnedFd, name: &str, flags: OFlags) -> Result<fs::File> {
    Ok(openat(directory, name, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o644))?.into())
}

/// Opens the existing file `name` below `directory` for direct I/O; `None` if the file system does not allow it.
#[cfg(target_os = "linux")]
pub(super) fn open_direct(
    directory: &OwnedFd,
    name: &str,
    flags: OFlags,
) -> Result<Option<(fs::File, DirectAlignment)>> {
    use rustix::io::Errno;
    match openat(directory, name, flags | OFlags::CLOEXEC | OFlags::DIRECT, Mode::from_raw_mode(0o644)) {
        Ok(file) => Ok(direct_alignment(&file).map(|alignment| (file.into(), alignment))),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn open_direct(
    _directory: &OwnedFd,
    _name: &str,
    _flags: OFlags,
) -> Result<Option<(fs::File, DirectAlignment)>> {
    Ok(None)
}

/// Whether an unnamed file in `directory` can be opened for direct I/O. Leaves no trace.
pub(super) fn probe_direct(directory: &OwnedFd) -> bool {
    #[cfg(target_os = "linux")]
    {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
        openat(directory, ".", flags, Mode::from_raw_mode(0o600))
            .is_ok_and(|file| direct_alignment(&file).is_some())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = directory;
        false
    }
}

/// What the kernel reports about direct I/O on `file`. Kernels before 6.1, and file systems that do not support the
/// query, report nothing; then this is [`DirectAlignment::PAGE`], and a refused read or write turns direct I/O off.
#[cfg(target_os = "linux")]
fn direct_alignment(file: &OwnedFd) -> Option<DirectAlignment> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    match statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
        Ok(stat) if stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0 => {
            DirectAlignment::new(stat.stx_dio_mem_align, stat.stx_dio_offset_align)
        }
        _ => Some(DirectAlignment::PAGE),
    }
}

/// Clears `O_DIRECT` of an open file.
pub(super) fn clear_direct(file: &fs::File) -> Result<()> {
    #[cfg(target_os = "linux")]
    {
        let flags = rustix::fs::fcntl_getfl(file)?;
        rustix::fs::fcntl_setfl(file, flags - OFlags::DIRECT)?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = file;
    Ok(())
}

/// Tells the page cache not to read ahead: lookups are random, and large reads say themselves how large they are.
/// (LevelDB under an 8 MiB read-ahead read 7–9 MB per get.)
pub(super) fn advise_random(file: &fs::File) {
    // Advice only: if it is refused, reads cost more and stay right.
    #[cfg(target_os = "linux")]
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Random);
    #[cfg(not(target_os = "linux"))]
    let _ = file;
}

/// Releases the space of a range; does nothing where holes are not supported.
pub(super) fn punch_hole(file: &fs::File, offset: u64, len: u64) -> Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        loop {
            match fallocate(file, flags, offset, len) {
                Err(Errno::INTR) => {}
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (file, offset, len);
        Ok(())
    }
}

/// Bytes of the file system of `file` that a program without privileges can still take.
pub(super) fn available_bytes(file: impl AsFd) -> Result<Option<u64>> {
    let file_system = rustix::fs::fstatvfs(file)?;
    Ok(Some(file_system.f_bavail.saturating_mul(file_system.f_frsize)))
}

/// Makes the entries of `directory` survive a power cut.
pub(super) fn sync_directory(directory: &OwnedFd) -> Result<()> {
    match rustix::fs::fsync(directory.as_fd()) {
        // Some network and FUSE file systems cannot sync directories at all and keep them in order themselves.
        Err(rustix::io::Errno::INVAL) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
