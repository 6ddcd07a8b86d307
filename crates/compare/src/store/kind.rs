//! The engines that can be compared.

use std::path::Path;

use alluvium_bench::BenchError;

use super::engine::{Engine, Settings};
#[cfg(feature = "stores")]
use super::fjall::Fjall;
#[cfg(feature = "stores")]
use super::lmdb::Lmdb;
use super::ours::Ours;
#[cfg(feature = "stores")]
use super::redb::Redb;
#[cfg(feature = "rocksdb")]
use super::rocks::Rocks;

/// An engine, a column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Alluvium
    Alluvium,
    /// RocksDB
    #[cfg(feature = "rocksdb")]
    Rocksdb,
    /// LMDB
    #[cfg(feature = "stores")]
    Lmdb,
    /// fjall
    #[cfg(feature = "stores")]
    Fjall,
    /// redb
    #[cfg(feature = "stores")]
    Redb,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Alluvium => "alluvium",
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => "rocksdb",
            #[cfg(feature = "stores")]
            Self::Lmdb => "lmdb",
            #[cfg(feature = "stores")]
            Self::Fjall => "fjall",
            #[cfg(feature = "stores")]
            Self::Redb => "redb",
        }
    }

    /// Its name in the table, with the mark of engines that read through the page cache.
    pub fn title(self) -> String {
        let mark = if self.uses_page_cache() { "*" } else { "" };
        format!("{}{mark}", self.name())
    }

    /// Whether its reads go through the page cache, so that its settings do not bound its memory.
    pub fn uses_page_cache(self) -> bool {
        match self {
            Self::Alluvium => false,
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => false,
            #[cfg(feature = "stores")]
            Self::Lmdb | Self::Fjall | Self::Redb => true,
        }
    }

    /// Opens an empty store in an existing, empty directory.
    pub fn open(self, path: &Path, settings: &Settings) -> Result<Box<dyn Engine>, BenchError> {
        Ok(match self {
            Self::Alluvium => Box::new(Ours::open(path, settings)?),
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => Box::new(Rocks::open(path, settings)?),
            #[cfg(feature = "stores")]
            Self::Lmdb => Box::new(Lmdb::open(path, settings)?),
            #[cfg(feature = "stores")]
            Self::Fjall => Box::new(Fjall::open(path, settings)?),
            #[cfg(feature = "stores")]
            Self::Redb => Box::new(Redb::open(path, settings)?),
        })
    }
}
