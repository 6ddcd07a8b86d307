//! memcached as the peer of a cache with a compressed zone: started on a socket of its own, measured by its process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::BenchError;

/// How long the program may take until it accepts connections.
const START: Duration = Duration::from_secs(10);

/// The pause before it is started again.
const RESTART: Duration = Duration::from_secs(2);

/// Sets that are sent together while loading.
const SETS_PER_BATCH: usize = 64;

/// A running memcached, which ends with this value.
#[derive(Debug)]
pub struct Memcached {
    program: Program,
    child: Child,
    stream: BufReader<UnixStream>,
    line: Vec<u8>,
    /// Sets without their answers.
    pending: Vec<u8>,
    pending_sets: usize,
    resident_bytes_before: u64,
}

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At the request to keep its items in its file.
    Asked,
    /// By `SIGKILL`.
    Killed,
}

/// Number of those that this process has started.
static STARTED: AtomicU64 = AtomicU64::new(0);

/// How it is started.
#[derive(Debug)]
struct Program {
    path: PathBuf,
    memory: u64,
    socket: PathBuf,
    /// The file that has its items, and bytes of an item.
    file: Option<(PathBuf, usize)>,
}

impl Program {
    fn start(&self) -> Result<(Child, BufReader<UnixStream>), BenchError> {
        let mut command = Command::new(&self.path);
        command.args(["-t", "1", "-m", &(self.memory >> 20).max(1).to_string(), "-s"]).arg(&self.socket);
        if let Some((file, item_bytes)) = &self.file {
            // With a file it takes a page for each size of items at the start: let there be few.
            command.arg("-e").arg(file).args(["-f", "4", "-n", &item_bytes.to_string()]);
        }
        // As root it insists on the name of a user.
        if std::env::var_os("USER").is_none_or(|user| user == "root") {
            command.args(["-u", "root"]);
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| BenchError::Usage(format!("{}: {error}", self.path.display())))?;
        let began = Instant::now();
        loop {
            if let Ok(stream) = UnixStream::connect(&self.socket) {
                return Ok((child, BufReader::new(stream)));
            }
            let ended = child.try_wait()?;
            if ended.is_some() || began.elapsed() > START {
                // It may have ended by itself.
                let _ = child.kill();
                child.wait()?;
                return Err(BenchError::Usage(format!("{} does not answer", self.path.display())));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Memcached {
    /// Starts `program` with room for `memory` bytes of items, one thread, and its defaults otherwise.
    ///
    /// # Errors
    /// [`BenchError::Usage`] if it does not start.
    pub fn start(program: &Path, memory: u64) -> Result<Self, BenchError> {
        Self::start_over(program, memory, None)
    }

    /// As [`start`](Self::start), with its items of some `item_bytes` in a file, so that it can be
    /// [restarted](Self::restart).
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_in_file(
        program: &Path,
        memory: u64,
        item_bytes: usize,
        file: &Path,
    ) -> Result<Self, BenchError> {
        Self::start_over(program, memory, Some((file.to_path_buf(), item_bytes)))
    }

    fn start_over(program: &Path, memory: u64, file: Option<(PathBuf, usize)>) -> Result<Self, BenchError> {
        // Several may run at the same time.
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("alluvium-bench-{}-{number}.sock", std::process::id());
        let socket = std::env::temp_dir().join(name);
        let program = Program { path: program.to_path_buf(), memory, socket, file };
        let (child, stream) = program.start()?;
        let mut started = Self {
            program,
            child,
            stream,
            line: Vec::new(),
            pending: Vec::new(),
            pending_sets: 0,
            resident_bytes_before: 0,
        };
        started.items()?;
        started.resident_bytes_before = started.process_bytes();
        Ok(started)
    }

    /// Ends the process and starts it again.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn restart(&mut self, end: End) -> Result<(), BenchError> {
        match end {
            End::Asked => {
                kill_process(Pid::from_child(&self.child), Signal::USR1).map_err(std::io::Error::from)?;
                self.child.wait()?;
                // It drops what it kept if its clock, which counts seconds, has not passed the end.
                std::thread::sleep(RESTART);
            }
            End::Killed => self.child.kill()?,
        }
        self.child.wait()?;
        (self.child, self.stream) = self.program.start()?;
        Ok(())
    }

    /// The socket at which it is reached.
    pub(crate) fn socket(&self) -> &Path {
        &self.program.socket
    }

    /// Its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Resident bytes of the process, without those before the first item.
    pub fn resident_bytes(&self) -> u64 {
        self.process_bytes().saturating_sub(self.resident_bytes_before)
    }

    fn process_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).map_or(0, |kib| kib << 10)
    }

    /// Items present.
    ///
    /// # Errors
    /// [`BenchError`]: the connection, or an answer that is none.
    pub fn items(&mut self) -> Result<u64, BenchError> {
        self.stream.get_mut().write_all(b"stats\r\n")?;
        let mut items = 0;
        while self.read_line()? != b"END" {
            if let Some(number) = self.line.strip_prefix(b"STAT curr_items ") {
                items = String::from_utf8_lossy(number).trim().parse().unwrap_or(0);
            }
        }
        Ok(items)
    }

    /// Whether `key` has an item, and whether it is `value`. `None` if it has none.
    ///
    /// # Errors
    /// As [`items`](Self::items).
    pub fn get(&mut self, key: &[u8], value: &[u8]) -> Result<Option<bool>, BenchError> {
        let request = [b"get ", key, b"\r\n"].concat();
        self.stream.get_mut().write_all(&request)?;
        if self.read_line()? == b"END" {
            return Ok(None);
        }
        let len = self.line.rsplit(|&byte| byte == b' ').next().map(String::from_utf8_lossy);
        let len: usize = len.and_then(|len| len.parse().ok()).ok_or_else(|| self.strange())?;
        let mut found = vec![0; len + 2];
        self.stream.read_exact(&mut found)?;
        if self.read_line()? != b"END" {
            return Err(self.strange());
        }
        Ok(Some(found.strip_suffix(b"\r\n") == Some(value)))
    }

    /// Removes the item of `key`, if it has one.
    ///
    /// # Errors
    /// As [`items`](Self::items).
    pub fn remove(&mut self, key: &[u8]) -> Result<(), BenchError> {
        let request = [b"delete ", key, b"\r\n"].concat();
        self.stream.get_mut().write_all(&request)?;
        let line = self.read_line()?;
        if line == b"DELETED" || line == b"NOT_FOUND" { Ok(()) } else { Err(self.strange()) }
    }

    /// Stores an item.
    ///
    /// # Errors
    /// As [`items`](Self::items).
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        self.set_later(key, value)?;
        self.finish_sets()
    }

    /// Stores an item soon, at the latest with [`finish_sets`](Self::finish_sets).
    ///
    /// # Errors
    /// As [`items`](Self::items).
    pub fn set_later(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        self.pending.extend_from_slice(b"set ");
        self.pending.extend_from_slice(key);
        write!(self.pending, " 0 0 {}\r\n", value.len())?;
        self.pending.extend_from_slice(value);
        self.pending.extend_from_slice(b"\r\n");
        self.pending_sets += 1;
        if self.pending_sets == SETS_PER_BATCH { self.finish_sets() } else { Ok(()) }
    }

    /// Sends the sets that wait, and reads their answers.
    ///
    /// # Errors
    /// As [`items`](Self::items).
    pub fn finish_sets(&mut self) -> Result<(), BenchError> {
        self.stream.get_mut().write_all(&self.pending)?;
        self.pending.clear();
        for _ in 0..std::mem::take(&mut self.pending_sets) {
            let line = self.read_line()?;
            // It may have no page for items of this size.
            if line != b"STORED" && line != b"SERVER_ERROR out of memory storing object" {
                return Err(self.strange());
            }
        }
        Ok(())
    }

    fn read_line(&mut self) -> Result<&[u8], BenchError> {
        self.line.clear();
        self.stream.read_until(b'\n', &mut self.line)?;
        let len = self.line.trim_ascii_end().len();
        self.line.truncate(len);
        if self.line.is_empty() { Err(self.strange()) } else { Ok(&self.line) }
    }

    fn strange(&self) -> BenchError {
        BenchError::Usage(format!("memcached answered {:?}", String::from_utf8_lossy(&self.line)))
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.program.socket);
    }
}
