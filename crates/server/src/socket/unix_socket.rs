//! [`UnixSocket`]: a socket in the file system.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::Stat;

/// A listening socket. Its file is removed with it, unless another has taken the file's place.
#[derive(Debug)]
pub(crate) struct UnixSocket {
    pub(crate) listener: UnixListener,
    pub(crate) path: Arc<Path>,
    file: Stat,
}

impl UnixSocket {
    /// Listens at `path` with the permissions `mode`. A socket that a dead process has left there is replaced.
    ///
    /// # Errors
    /// When the path is taken by something else or by a server that listens, or the system refuses.
    pub(crate) fn bind(path: &Path, mode: u32) -> io::Result<Self> {
        refuse_taken(path)?;
        // Under another name until the permissions are right, so that nobody connects before.
        let young = young_path(path);
        let _ = fs::remove_file(&young);
        let listener = UnixListener::bind(&young)?;
        let placed = fs::set_permissions(&young, Permissions::from_mode(mode))
            .and_then(|()| listener.set_nonblocking(true))
            .and_then(|()| fs::rename(&young, path))
            .and_then(|()| Ok(rustix::fs::lstat(path)?));
        match placed {
            Ok(file) => Ok(Self { listener, path: Arc::from(path), file }),
            Err(error) => {
                let _ = fs::remove_file(&young);
                Err(error)
            }
        }
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        let is_ours = rustix::fs::lstat(&*self.path)
            .is_ok_and(|file| (file.st_dev, file.st_ino) == (self.file.st_dev, self.file.st_ino));
        if is_ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// # Errors
/// When something is at `path` that is not a socket without a listener.
fn refuse_taken(path: &Path) -> io::Result<()> {
    let taken = |what| Err(io::Error::new(io::ErrorKind::AddrInUse, what));
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(file) if !file.file_type().is_socket() => taken("there is a file that is not a socket"),
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            Err(error) => Err(error),
            Ok(_) => taken("another process listens there"),
        },
    }
}

/// The name of the socket until it is ready.
fn young_path(path: &Path) -> PathBuf {
    let mut young = path.as_os_str().to_owned();
    young.push(format!(".{}", std::process::id()));
    PathBuf::from(young)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_takes_the_place_of_a_dead_one_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("clients");
        let taken = |path: &Path| UnixSocket::bind(path, 0o600).unwrap_err().kind();
        // Left behind.
        drop(UnixListener::bind(&path).unwrap());
        let socket = UnixSocket::bind(&path, 0o600).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(taken(&path), io::ErrorKind::AddrInUse);
        UnixStream::connect(&path).unwrap();
        drop(socket);
        assert!(!path.exists());
        fs::write(&path, "text").unwrap();
        assert_eq!(taken(&path), io::ErrorKind::AddrInUse);
        assert_eq!(fs::read(&path).unwrap(), b"text");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_file_of_a_successor_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("clients");
        let first = UnixSocket::bind(&path, 0o600).unwrap();
        fs::remove_file(&path).unwrap();
        let second = UnixSocket::bind(&path, 0o600).unwrap();
        drop(first);
        UnixStream::connect(&path).unwrap();
        drop(second);
        assert!(!path.exists());
    }
}
