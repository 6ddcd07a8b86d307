//! [`Scripts`]: the sources that clients have sent, by their SHA-1.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use sha1::{Digest as _, Sha1};

/// Maximum number of scripts, and of the bytes of their sources. A client that sends more gets an error: it may flush
/// them.
const SCRIPTS_MAX: usize = 10_000;
const SOURCE_BYTES_MAX: usize = 64 << 20;

/// The SHA-1 of a script, in hexadecimal.
pub(crate) type Digest = [u8; 40];

/// The scripts of all workers.
#[derive(Default)]
pub(crate) struct Scripts {
    sources: RwLock<Sources>,
    /// How often they were flushed: interpreters forget compiled ones then.
    flushes: AtomicU64,
}

#[derive(Default)]
struct Sources {
    by_digest: BTreeMap<Digest, Arc<[u8]>>,
    bytes: usize,
}

/// The SHA-1 of a source in hexadecimal.
pub(crate) fn digest(source: &[u8]) -> Digest {
    let mut hexadecimal = [0; 40];
    for (byte, text) in Sha1::digest(source).iter().zip(hexadecimal.chunks_exact_mut(2)) {
        text[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
        text[1] = b"0123456789abcdef"[usize::from(byte & 15)];
    }
    hexadecimal
}

impl Scripts {
    /// Keeps a script; returns its digest, or `None` if there is no room for it.
    pub(crate) fn insert(&self, source: &[u8]) -> Option<Digest> {
        let digest = digest(source);
        let mut sources = self.sources.write().unwrap_or_else(PoisonError::into_inner);
        if sources.by_digest.contains_key(&digest) {
            return Some(digest);
        }
        let bytes = sources.bytes + source.len();
        if sources.by_digest.len() >= SCRIPTS_MAX || bytes > SOURCE_BYTES_MAX {
            return None;
        }
        sources.bytes = bytes;
        sources.by_digest.insert(digest, source.into());
        Some(digest)
    }

    /// The script with this digest, whose letters may be upper-case.
    pub(crate) fn get(&self, digest: &[u8]) -> Option<(Digest, Arc<[u8]>)> {
        let digest: Digest = digest.to_ascii_lowercase().try_into().ok()?;
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner);
        sources.by_digest.get(&digest).map(|source| (digest, source.clone()))
    }

    /// Number of scripts.
    pub(crate) fn len(&self) -> usize {
        self.sources.read().unwrap_or_else(PoisonError::into_inner).by_digest.len()
    }

    /// Bytes of their sources.
    pub(crate) fn bytes(&self) -> usize {
        self.sources.read().unwrap_or_else(PoisonError::into_inner).bytes
    }

    pub(crate) fn flush(&self) {
        *self.sources.write().unwrap_or_else(PoisonError::into_inner) = Sources::default();
        self.flushes.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_by_their_digest() {
        let scripts = Scripts::default();
        let digest = scripts.insert(b"return 1").unwrap();
        assert_eq!(&digest, b"e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
        assert_eq!(scripts.get(&digest.to_ascii_uppercase()).unwrap().1[..], *b"return 1");
        assert!(scripts.get(b"e0e1").is_none());
        scripts.flush();
        assert!(scripts.get(&digest).is_none());
        assert!(scripts.insert(&vec![b' '; SOURCE_BYTES_MAX + 1]).is_none());
    }
}
