//! A cache in a file that is removed at the end.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use alluvium_cache::{Cache, Survive, SurviveError, SurvivingBuilder, SurvivingCache};

pub const BYTES: usize = 4 << 20;

/// A file that is removed at the end.
pub struct TemporaryFile(pub PathBuf);

impl TemporaryFile {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("alluvium-surviving-{name}-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        Self(path)
    }

    pub fn builder(&self, survive: Survive) -> SurvivingBuilder {
        Cache::builder().memory_limit(BYTES).payload_bytes_mean(110).survive(&self.0, survive)
    }

    pub fn open(&self) -> SurvivingCache {
        self.builder(Survive::Process).open().unwrap()
    }

    pub fn refusal(&self) -> SurviveError {
        self.builder(Survive::Process).open().unwrap_err()
    }

    pub fn overwrite(&self, at: u64, bytes: &[u8]) {
        fs::OpenOptions::new().write(true).open(&self.0).unwrap().write_all_at(bytes, at).unwrap();
    }
}

impl AsRef<Path> for TemporaryFile {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

pub fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}
