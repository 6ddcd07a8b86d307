//! Files that exist as a whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that is written under another name, and renamed when it is complete.
#[derive(Debug)]
pub struct DurableFile {
    file: File,
    path: PathBuf,
    /// Its path until then; `None` for special files such as pipes, which are written directly.
    partial: Option<PathBuf>,
}

impl DurableFile {
    /// Starts the file; a file that has this name stays unchanged until [`DurableFile::complete`].
    pub fn create(path: &Path) -> io::Result<Self> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let is_special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        let partial = (!is_special).then(|| with_suffix(path, ".partial"));
        let file = match &partial {
            Some(partial) => File::create(partial),
            None => File::options().write(true).open(path),
        };
        Ok(Self { file: file.map_err(named)?, path: path.to_owned(), partial })
    }

    /// Makes the content durable under the file's own name.
    pub fn complete(mut self) -> io::Result<()> {
        if let Some(partial) = self.partial.take() {
            let renamed = self.file.sync_all().and_then(|()| fs::rename(&partial, &self.path));
            if renamed.is_err() {
                self.partial = Some(partial);
            }
            renamed?;
            let directory = self.path.parent().filter(|directory| !directory.as_os_str().is_empty());
            File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
        }
        Ok(())
    }
}

impl Write for DurableFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for DurableFile {
    fn drop(&mut self) {
        // Leaves no incomplete file; if that fails, the name shows that it is one.
        if let Some(partial) = &self.partial {
            let _ = fs::remove_file(partial);
        }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_whole_or_not_at_all() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("file");
        for content in ["one", "two"] {
            let mut file = DurableFile::create(&path)?;
            file.write_all(content.as_bytes())?;
            file.complete()?;
            assert_eq!(fs::read_to_string(&path)?, content);
        }
        let mut file = DurableFile::create(&path)?;
        file.write_all(b"three")?;
        drop(file);
        assert_eq!(fs::read_to_string(&path)?, "two");
        assert_eq!(fs::read_dir(directory.path())?.count(), 1);
        Ok(())
    }
}
