//! Databases that run out of a resource: of disk on a small file system, or of file descriptors.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use super::context::Context;

/// The resource that is scarce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scarcity {
    /// A file system of [`SMALL_DISK`] that fills up while the database works.
    Disk,
    /// At most [`DESCRIPTORS`] open files.
    Descriptors,
}

/// Size of the small file system: enough for a database of this test.
const SMALL_DISK: &str = "size=192m";
/// File descriptors of a process that has few.
const DESCRIPTORS: u32 = 256;
/// The directory, within that of a database under test, where the small file system is mounted.
const SMALL: &str = "small";
const BALLAST: &str = "ballast";
/// Bytes by which the ballast grows at a time.
const PIECE_BYTES: usize = 64 << 10;

/// The database's path in a directory: on the small file system if there is one.
pub fn database_path(directory: &Path) -> PathBuf {
    let small = directory.join(SMALL);
    if small.is_dir() { small.join("database") } else { directory.join("database") }
}

/// A small file system, which is unmounted on drop.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one in a directory; `None` if this process is not allowed to.
    pub fn mount(directory: &Path) -> Option<Self> {
        let path = directory.join(SMALL);
        std::fs::create_dir_all(&path).ok()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", SMALL_DISK, "tmpfs"]).arg(&path);
        let is_mounted = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        if !is_mounted {
            let _ = std::fs::remove_dir(&path);
            return None;
        }
        Some(Self(path))
    }

    /// Leaves it mounted, with its content.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).stderr(Stdio::null()).status();
    }
}

/// The command that starts `program`.
pub fn command(program: &Path, scarcity: Option<Scarcity>) -> Command {
    if scarcity != Some(Scarcity::Descriptors) {
        return Command::new(program);
    }
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit -n {DESCRIPTORS}; exec \"$0\" \"$@\"")).arg(program);
    command
}

/// Frees space on the small file system.
pub fn drop_ballast(directory: &Path) {
    let _ = std::fs::remove_file(directory.join(SMALL).join(BALLAST));
}

/// After a while, fills the small file system almost completely.
pub fn fill(context: &Context, mut rng: StdRng) {
    let life = Duration::from_millis(rng.random_range(0..700));
    let start = std::time::Instant::now();
    while start.elapsed() < life {
        if context.board.is_over() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    if !context.directory.join(SMALL).is_dir() {
        return;
    }
    let Ok(mut ballast) = File::create(context.directory.join(SMALL).join(BALLAST)) else { return };
    let piece = vec![1; PIECE_BYTES];
    let mut len = 0;
    while ballast.write_all(&piece).is_ok() {
        len += PIECE_BYTES as u64;
    }
    let _ = ballast.set_len(len.saturating_sub(rng.random_range(0..1 << 20)));
}
