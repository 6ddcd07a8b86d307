//! The service manager (systemd), if it started this process: the sockets that it opened, and what it is notified of.

use std::io;
use std::os::unix::net::UnixDatagram;

use alluvium_server::Listeners;
use listenfd::ListenFd;

/// The sockets that the manager has opened (`LISTEN_FDS`): the first for clients, the second for metrics.
pub fn listeners() -> io::Result<Listeners> {
    let mut opened = ListenFd::from_env();
    Ok(Listeners { clients: opened.take_tcp_listener(0)?, metrics: opened.take_tcp_listener(1)? })
}

/// Tells the manager the state of the service (`sd_notify`). Does nothing without a manager that wants to know; a
/// manager that cannot be told is no reason to serve less.
pub fn notify(state: &str) {
    if let Some(path) = std::env::var_os("NOTIFY_SOCKET")
        && let Ok(socket) = UnixDatagram::unbound()
    {
        let _ = send(&socket, &path, state.as_bytes());
    }
}

fn send(socket: &UnixDatagram, path: &std::ffi::OsStr, state: &[u8]) -> io::Result<usize> {
    use std::os::unix::ffi::OsStrExt;
    // A name that begins with `@` is not in the file system.
    #[cfg(target_os = "linux")]
    if let Some(name) = path.as_bytes().strip_prefix(b"@") {
        use std::os::linux::net::SocketAddrExt;
        let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
        return socket.send_to_addr(state, &address);
    }
    socket.send_to(state, path)
}
