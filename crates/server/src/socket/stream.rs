//! [`Stream`]: a client's socket.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;

#[cfg(feature = "tls")]
use super::tls::TlsStream;

/// A connected socket that does not block.
#[derive(Debug)]
pub(crate) enum Stream {
    Internet(TcpStream),
    Unix(UnixStream),
    #[cfg(feature = "tls")]
    Encrypted(Box<TlsStream>),
}

impl Stream {
    /// Prepares an accepted socket for a worker.
    ///
    /// # Errors
    /// The system's, most often because the client is gone.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        match self {
            Self::Internet(socket) => prepare(socket),
            #[cfg(feature = "tls")]
            Self::Encrypted(stream) => prepare(&stream.socket),
            Self::Unix(stream) => stream.set_nonblocking(true),
        }
    }

    /// Reads what has arrived, up to the length of `bytes`; 0 if the client sends no more.
    pub(crate) fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Internet(stream) => stream.read(bytes),
            Self::Unix(stream) => stream.read(bytes),
            #[cfg(feature = "tls")]
            Self::Encrypted(stream) => stream.read(bytes),
        }
    }

    /// Minimum length of the buffer for a read.
    pub(crate) fn read_bytes_min(&self) -> usize {
        match self {
            Self::Internet(_) | Self::Unix(_) => 1,
            #[cfg(feature = "tls")]
            Self::Encrypted(_) => TlsStream::READ_BYTES_MIN,
        }
    }

    /// Sends as much of `bytes` as the socket accepts, and returns how many it accepted.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Internet(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            #[cfg(feature = "tls")]
            Self::Encrypted(stream) => stream.write(bytes),
        }
    }

    /// Sends what was accepted and waits for the socket, as encrypted bytes do.
    pub(crate) fn send(&mut self) -> io::Result<()> {
        match self {
            Self::Internet(_) | Self::Unix(_) => Ok(()),
            #[cfg(feature = "tls")]
            Self::Encrypted(stream) => stream.send(),
        }
    }

    /// Whether bytes that were accepted wait for the socket.
    pub(crate) fn has_unsent(&self) -> bool {
        match self {
            Self::Internet(_) | Self::Unix(_) => false,
            #[cfg(feature = "tls")]
            Self::Encrypted(stream) => stream.has_unsent(),
        }
    }

    /// Whether the last read has seen that the client sends no more, behind the bytes that it returned.
    pub(crate) fn has_ended(&self) -> bool {
        match self {
            Self::Internet(_) | Self::Unix(_) => false,
            #[cfg(feature = "tls")]
            Self::Encrypted(stream) => stream.has_ended(),
        }
    }
}

fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.set_nodelay(true)?;
    Ok(rustix::net::sockopt::set_socket_keepalive(socket, true)?)
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Internet(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
            #[cfg(feature = "tls")]
            Self::Encrypted(stream) => stream.socket.as_fd(),
        }
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}
