//! Opens the file of a cache that survives, or makes one.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use alluvium_base::Corruption;
use alluvium_io::LockedFile;
use rustix::fs::{FallocateFlags, fallocate};

use crate::memory::{HUGE_PAGE_BYTES, UNIT_BYTES, is_persistent};

use super::core::{Start, format};
use super::error::SurviveError;
use super::file_medium::{FileMedium, Survive};
use super::geometry::{Geometry, HEADER_BYTES};
use super::header::{Header, NoHeader, NoHeaderKind, SESSION_AT, SessionState, boot};
use super::medium::{Medium, word_at};
use super::packing::name_of;

/// Words of the session.
const STATE: usize = 0;
const BOOT: usize = 1;
const PROCESS: usize = 3;
const SESSIONS: usize = 4;
const PROMISE: usize = 5;

/// How the content was found when the cache was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// There was no file, or it was reset.
    New,
    /// It was closed, or only the process had ended: everything is there.
    Complete,
    /// After a crash: items that had not left the processor's cache, or the system's, are absent.
    AfterCrash,
    /// The content was dropped, because the system or the device failed and this file does not survive that.
    Dropped,
}

/// An open file, locked.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub medium: FileMedium,
    pub header: Header,
    pub opened: Opened,
    /// Holds the lock.
    file: LockedFile,
}

/// What to open.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'a> {
    pub path: &'a Path,
    pub survive: Survive,
    /// The header of a new file. One that exists keeps its hasher.
    pub header: Header,
    /// Replaces a file that cannot be opened.
    pub reset: bool,
}

impl Wanted<'_> {
    fn system(&self, action: &'static str) -> impl Fn(io::Error) -> SurviveError {
        let path = self.path.to_path_buf();
        move |error| SurviveError::System { path: path.clone(), action, error }
    }

    /// Opens the file, or makes one where there is none.
    ///
    /// # Errors
    /// [`SurviveError`]; the file is as it was.
    pub fn open(&self) -> Result<OpenFile, SurviveError> {
        let file = match OpenOptions::new().read(true).write(true).open(self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.make(),
            Err(error) => return Err(self.system("open")(error)),
        };
        let locked = self.lock(file, self.path)?;
        let file = locked.file();
        let number = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let own = file.metadata().map(number).map_err(self.system("open"))?;
        if fs::metadata(self.path).map(number).ok() != Some(own) {
            // Another process has just replaced it.
            let holder = "another process, which is replacing it".to_owned();
            return Err(SurviveError::InUse { path: self.path.to_path_buf(), holder });
        }
        match self.check(file) {
            Ok(header) => self.continued(locked, header),
            // The lock on the old file is held until there is another of its name.
            Err(SurviveError::System { path, action, error }) => {
                Err(SurviveError::System { path, action, error })
            }
            Err(_) if self.reset => self.make(),
            Err(error) => Err(error),
        }
    }

    fn lock(&self, file: File, path: &Path) -> Result<LockedFile, SurviveError> {
        LockedFile::exclusive(file).map_err(|(file, error)| match error {
            TryLockError::WouldBlock => {
                SurviveError::InUse { path: path.to_path_buf(), holder: holder(&file) }
            }
            TryLockError::Error(error) => self.system("lock")(error),
        })
    }

    /// The header of a file, if it is one that this cache can use.
    fn check(&self, file: &File) -> Result<Header, SurviveError> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        let mut whole = file;
        whole.rewind().map_err(self.system("read"))?;
        whole.take(HEADER_BYTES as u64).read_to_end(&mut bytes).map_err(self.system("read"))?;
        let name = self.path.display().to_string();
        let header = Header::decode(&bytes).map_err(|NoHeader { offset, expected, found, kind }| {
            let what = Corruption::new(&name, offset, expected, found);
            match kind {
                NoHeaderKind::Foreign => SurviveError::Foreign(what),
                NoHeaderKind::Newer => SurviveError::Newer(what),
                NoHeaderKind::Damaged => SurviveError::Damaged(what),
            }
        })?;
        let file_bytes = header.geometry.file_bytes() as u64;
        let len = file.metadata().map_err(self.system("read"))?.len();
        if len != file_bytes {
            let (expected, found) = (format!("{file_bytes} bytes"), format!("{len} bytes"));
            return Err(SurviveError::Damaged(Corruption::new(name, len.min(file_bytes), expected, found)));
        }
        if header.geometry != self.header.geometry || header.codec != self.header.codec {
            let (expected, found) = (shape(&self.header), shape(&header));
            return Err(SurviveError::OtherShape(Corruption::new(name, 16, expected, found)));
        }
        // Read, not mapped: of a part without space, a read is harmless.
        let mut tables = vec![0; header.geometry.tables_end() - HEADER_BYTES];
        file.read_exact_at(&mut tables, HEADER_BYTES as u64).map_err(self.system("read"))?;
        check_tables(&tables, &header.geometry)
            .map_err(|what| SurviveError::Damaged(what.within(&name, 0)))?;
        Ok(header)
    }

    fn map(&self, file: &File, header: &Header) -> Result<FileMedium, SurviveError> {
        FileMedium::new(file, header.geometry.file_bytes(), self.survive).map_err(self.system("map"))
    }

    /// Continues with a file that was checked.
    fn continued(&self, locked: LockedFile, header: Header) -> Result<OpenFile, SurviveError> {
        // A part without space, as a copy may have, would end the process when it is touched. Where there is none, the
        // system need not look at each page.
        let file = locked.file();
        let file_bytes = header.geometry.file_bytes() as u64;
        let allocated = file.metadata().map_err(self.system("read"))?.blocks().saturating_mul(512);
        if allocated < file_bytes {
            fallocate(file, FallocateFlags::empty(), 0, file_bytes)
                .map_err(|error| self.system("allocate")(error.into()))?;
        }
        let medium = self.map(file, &header)?;
        let session = |word| medium.load(word_at(SESSION_AT, word));
        let is_same_boot = boot() != [0, 0] && [session(BOOT), session(BOOT + 1)] == boot();
        // What was flushed depends on the session that left it, not on this one.
        let is_flushed = session(PROMISE) == promise(Survive::Power)
            || session(PROMISE) == promise(Survive::Pmem) && is_persistent(file);
        let opened = match SessionState::of(session(STATE)) {
            SessionState::Closed => Opened::Complete,
            SessionState::Open if is_same_boot => Opened::Complete,
            SessionState::Open if is_flushed => Opened::AfterCrash,
            _ => Opened::Dropped,
        };
        let open = OpenFile { medium, header, opened, file: locked };
        open.begin_session().map_err(self.system("write"))?;
        Ok(open)
    }

    /// Makes a new file beside and gives it the name when it is whole, so that no crash leaves half of one.
    fn make(&self) -> Result<OpenFile, SurviveError> {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".new");
        let beside = PathBuf::from(name);
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&beside)
            .map_err(self.system("create"))?;
        let locked = self.lock(file, &beside)?;
        let file = locked.file();
        let bytes = self.header.geometry.file_bytes();
        // What an earlier attempt left is cut off, so that all of it is zero.
        file.set_len(0).map_err(self.system("create"))?;
        file.set_len(bytes as u64).map_err(self.system("create"))?;
        let medium = self.map(file, &self.header)?;
        let allocated = use_huge_pages(file, &medium)
            .and_then(|()| Ok(fallocate(file, FallocateFlags::empty(), 0, bytes as u64)?));
        allocated.map_err(|error| {
            let _ = fs::remove_file(&beside);
            self.system("allocate")(error)
        })?;
        file.write_all_at(&self.header.encode(), 0).map_err(self.system("write"))?;
        format(&medium, &self.header.geometry);
        let open = OpenFile { medium, header: self.header, opened: Opened::New, file: locked };
        open.begin_session().map_err(self.system("write"))?;
        fs::rename(&beside, self.path).map_err(self.system("create"))?;
        Ok(open)
    }
}

impl OpenFile {
    /// How the partitions begin.
    pub fn start(&self) -> Start {
        match self.opened {
            Opened::New => Start::New,
            Opened::Complete => Start::Resumed,
            Opened::AfterCrash | Opened::Dropped => Start::AfterCrash,
        }
    }

    /// Releases the medium; the lock lives as long as the file.
    pub fn into_parts(self) -> (FileMedium, LockedFile) {
        (self.medium, self.file)
    }

    fn begin_session(&self) -> io::Result<()> {
        let [first, second] = boot();
        let store = |word, value| self.medium.store(word_at(SESSION_AT, word), value);
        // Dropped content must not come back: the state stays unknown until it is gone, see `SurvivingCache::over`.
        let state = if self.opened == Opened::Dropped { SessionState::Unknown } else { SessionState::Open };
        store(STATE, state.word());
        store(BOOT, first);
        store(BOOT + 1, second);
        store(PROCESS, u64::from(std::process::id()));
        store(PROMISE, promise(self.medium.survive()));
        let sessions = self.medium.load(word_at(SESSION_AT, SESSIONS));
        store(SESSIONS, sessions.wrapping_add(1));
        self.medium.sync(0, HEADER_BYTES)
    }
}

/// Notes how the session is left, and waits until the note is on the device.
pub(crate) fn set_session(medium: &FileMedium, state: SessionState) -> io::Result<()> {
    medium.store(word_at(SESSION_AT, STATE), state.word());
    medium.sync(0, HEADER_BYTES)
}

/// Checks the lines of partitions and zones, which are the bytes behind the header.
pub(crate) fn check_tables(tables: &[u8], geometry: &Geometry) -> Result<(), Corruption> {
    let check = |at: usize, expected: &str, is_right: &dyn Fn(u64) -> bool| {
        let word = tables.get(at - HEADER_BYTES..).and_then(|rest| rest.first_chunk());
        let word = word.map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if is_right(word) {
            return Ok(());
        }
        Err(Corruption::new("", at as u64, expected, word.to_string()))
    };
    (0..geometry.partitions).try_for_each(|partition| {
        let at = geometry.partition_at(partition);
        check(at, "the number of a zone", &|active| active < geometry.zones as u64)
    })?;
    let version_max = u64::from(geometry.version_max());
    (0..geometry.partitions * geometry.zones).try_for_each(|zone| {
        let at = geometry.zone_line_at(zone);
        check(at, "the version of a zone", &|version| (1..=version_max).contains(&version))
    })
}

/// Makes a new file in memory one of huge pages: with small ones most accesses to a large cache would wait for the
/// tables of pages, too. The pages stay huge when the file is opened again. Others are left alone.
fn use_huge_pages(file: &File, medium: &FileMedium) -> io::Result<()> {
    /// `TMPFS_MAGIC`.
    const IN_MEMORY: rustix::fs::FsWord = 0x0102_1994;
    if rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type == IN_MEMORY) {
        // The system makes no huge page of nothing.
        for at in (0..medium.len()).step_by(HUGE_PAGE_BYTES) {
            file.write_all_at(&[0; UNIT_BYTES], at as u64)?;
        }
        medium.use_huge_pages();
    }
    Ok(())
}

/// The promise of a session, as it is stored.
fn promise(survive: Survive) -> u64 {
    match survive {
        Survive::Process => 1,
        Survive::Pmem => 2,
        Survive::Power => 3,
    }
}

fn shape(header: &Header) -> String {
    let Geometry { partitions, zones, zone_bytes, buckets, .. } = &header.geometry;
    let blocks = name_of(header.codec);
    format!("{partitions} partitions of {zones} zones of {zone_bytes} bytes and {buckets} buckets, {blocks}")
}

/// What the file and the process table say of who holds the file.
fn holder(file: &File) -> String {
    let mut bytes = [0; UNIT_BYTES];
    let pid = match file.read_exact_at(&mut bytes, word_at(SESSION_AT, PROCESS) as u64) {
        Ok(()) => u64::from_le_bytes(bytes),
        Err(_) => 0,
    };
    if pid == 0 || pid > u64::from(u32::MAX) {
        return "an unknown process".to_owned();
    }
    match fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(command) => format!("process {pid} ({})", command.trim()),
        Err(_) => format!("process {pid}"),
    }
}
