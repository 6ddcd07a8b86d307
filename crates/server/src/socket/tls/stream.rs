//! [`TlsStream`]: an encrypted connection.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};

/// Bytes that one read takes from the socket: a record of TLS and its header.
const RECEIVED_BYTES_MAX: usize = (16 << 10) + 2048 + 5;
/// Encrypted replies that wait for the socket.
const UNSENT_BYTES_MAX: usize = 64 << 10;

/// A socket that does not block, with the state of its encryption.
#[derive(Debug)]
pub(crate) struct TlsStream {
    pub(in crate::socket) socket: TcpStream,
    session: ServerConnection,
    /// The client sends no more.
    has_ended: bool,
}

impl TlsStream {
    /// Minimum length of the buffer for a read.
    pub(in crate::socket) const READ_BYTES_MIN: usize = 2 * RECEIVED_BYTES_MAX;

    /// The handshake is done by reading and sending.
    ///
    /// # Errors
    /// When the configuration allows no connection.
    pub(in crate::socket) fn new(socket: TcpStream, config: Arc<ServerConfig>) -> io::Result<Self> {
        let mut session = ServerConnection::new(config).map_err(io::Error::other)?;
        session.set_buffer_limit(Some(UNSENT_BYTES_MAX));
        Ok(Self { socket, session, has_ended: false })
    }

    /// Reads what has arrived and decrypts it. Nothing that is decrypted stays behind, since no poller would report it:
    /// there is room for what one read takes and for an unfinished record before it.
    pub(in crate::socket) fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut received = [0; RECEIVED_BYTES_MAX];
        let mut filled = 0;
        while bytes.len() - filled >= Self::READ_BYTES_MIN && !self.has_ended {
            let arrived = match self.socket.read(&mut received) {
                Ok(0) => {
                    self.has_ended = true;
                    break;
                }
                Ok(arrived) => arrived,
                Err(_) if filled > 0 => break,
                Err(error) => return Err(error),
            };
            let mut encrypted = &received[..arrived];
            while !encrypted.is_empty() && !self.has_ended {
                self.session.read_tls(&mut encrypted)?;
                if let Err(error) = self.session.process_new_packets() {
                    // What is wrong, for the client.
                    let _ = self.send();
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
                filled += self.take_decrypted(&mut bytes[filled..])?;
            }
        }
        match filled {
            0 if !self.has_ended => Err(io::ErrorKind::WouldBlock.into()),
            filled => Ok(filled),
        }
    }

    fn take_decrypted(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.session.reader().read(&mut bytes[filled..]) {
                Ok(0) => {
                    self.has_ended = true;
                    break;
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Encrypts `bytes`, as many as may wait for the socket, and sends.
    pub(in crate::socket) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let accepted = self.session.writer().write(bytes)?;
        self.send()?;
        if accepted == 0 && !bytes.is_empty() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(accepted) }
    }

    /// Sends what waits for the socket, as much as it accepts.
    pub(in crate::socket) fn send(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether encrypted bytes wait for the socket.
    pub(in crate::socket) fn has_unsent(&self) -> bool {
        self.session.wants_write()
    }

    /// Whether the client sends no more, which the last read may have seen behind other bytes.
    pub(in crate::socket) fn has_ended(&self) -> bool {
        self.has_ended
    }
}

impl Drop for TlsStream {
    /// Says that the connection ends here, so that the client knows that it has everything.
    fn drop(&mut self) {
        self.session.send_close_notify();
        let _ = self.send();
    }
}
