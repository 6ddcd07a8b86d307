//! SIGINT and SIGTERM end the process after the stores that a figure has made are removed.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::process::exit;
use std::thread;

use alluvium_bench::WorkDirectories;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

/// Removes the directories when a signal comes, and ends the process.
pub fn remove_directories(directories: WorkDirectories) -> io::Result<()> {
    let (mut receiver, sender) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM] {
        pipe::register(signal, sender.try_clone()?)?;
    }
    let wait = move || {
        if receiver.read_exact(&mut [0]).is_ok() {
            if let Err(error) = directories.remove_all() {
                eprintln!("alluvium-papers: not all that was made could be removed: {error}");
            }
            exit(1);
        }
    };
    thread::Builder::new().name("interruption".to_owned()).spawn(wait)?;
    Ok(())
}
