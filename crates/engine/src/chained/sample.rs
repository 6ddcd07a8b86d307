//! [`LiveSample`]: how much of a chained log is live, from a sample of its keys.

use std::collections::{BTreeMap, HashMap};

use alluvium_base::KeyHash;
use alluvium_io::sync::Mutex;
use alluvium_io::sync::atomic::{AtomicU32, Ordering};

use crate::item::Item;

/// Maximum number of keys in the sample. The standard error of an estimate is about their number's square root.
const KEYS_MAX: usize = 16 << 10;

/// Bytes of a key of a stored sample: half of its hash, bytes of its record, expiry.
const KEY_BYTES: usize = 8 + 4 + 8;
/// The stored expiry of an item that does not expire.
const NEVER: u64 = u64::MAX;

/// The newest records of the keys whose hashes end in a number of zeros. When there are too many, one zero more is
/// demanded: a uniform sample of the keys, as long as hashes are uniform.
#[derive(Debug, Default)]
pub(crate) struct LiveSample {
    /// Number of zeros in which the hash of a sampled key ends.
    zeros: AtomicU32,
    /// By the leading half of the hash.
    keys: Mutex<HashMap<u64, Sampled>>,
}

#[derive(Debug, Clone, Copy)]
struct Sampled {
    bytes: u32,
    expires_at_ms: Option<u64>,
}

/// What is live.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Live {
    pub items: f64,
    /// Bytes of their records.
    pub bytes: f64,
}

impl LiveSample {
    /// Notes the newest record of a key, which takes this number of bytes.
    #[inline]
    pub fn note(&self, hash: KeyHash, item: &Item<'_>, bytes: usize) {
        if hash.high().trailing_zeros() >= self.zeros.load(Ordering::Relaxed) {
            self.note_sampled(hash, item, bytes);
        }
    }

    #[cold]
    fn note_sampled(&self, hash: KeyHash, item: &Item<'_>, bytes: usize) {
        let mut keys = self.keys.lock().expect("no panic while held");
        if item.is_tombstone() {
            keys.remove(&hash.high());
            return;
        }
        keys.insert(hash.high(), Sampled { bytes: bytes as u32, expires_at_ms: item.expires_at_ms });
        if keys.len() > KEYS_MAX {
            let zeros = self.zeros.fetch_add(1, Ordering::Relaxed) + 1;
            keys.retain(|high, _| high.trailing_zeros() >= zeros);
        }
    }

    /// Appends the sample as bytes.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        let keys = self.keys.lock().expect("no panic while held");
        out.extend_from_slice(&self.zeros.load(Ordering::Relaxed).to_le_bytes());
        for (high, key) in keys.iter().collect::<BTreeMap<_, _>>() {
            out.extend_from_slice(&high.to_le_bytes());
            out.extend_from_slice(&key.bytes.to_le_bytes());
            out.extend_from_slice(&key.expires_at_ms.unwrap_or(NEVER).to_le_bytes());
        }
    }

    /// Reads a sample that takes all of `bytes`. `None` if it is none.
    pub fn read_from(bytes: &[u8]) -> Option<Self> {
        let (zeros, keys) = bytes.split_first_chunk()?;
        let zeros = u32::from_le_bytes(*zeros);
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).ok();
        if zeros > u64::BITS || !keys.len().is_multiple_of(KEY_BYTES) {
            return None;
        }
        let key = |key: &[u8]| {
            let bytes = u32::from_le_bytes(key[8..12].try_into().ok()?);
            let expires_at_ms = number(&key[12..]).filter(|&expiry| expiry != NEVER);
            Some((number(&key[..8])?, Sampled { bytes, expires_at_ms }))
        };
        let keys = keys.chunks_exact(KEY_BYTES).map(key).collect::<Option<_>>()?;
        Some(Self { zeros: AtomicU32::new(zeros), keys: Mutex::new(keys) })
    }

    /// An estimate of what is live at this time.
    pub fn live(&self, now_ms: u64) -> Live {
        let keys = self.keys.lock().expect("no panic while held");
        let scale = f64::from(self.zeros.load(Ordering::Relaxed)).exp2();
        let live = keys.values().filter(|key| key.expires_at_ms.is_none_or(|expiry| expiry > now_ms));
        live.fold(Live::default(), |sum, key| Live {
            items: sum.items + scale,
            bytes: sum.bytes + scale * f64::from(key.bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_near_what_is_live() {
        let sample = LiveSample::default();
        let hasher = alluvium_base::KeyHasher::Xxh3 { seed: 3 };
        for round in 0..2 {
            for number in 0..100_000_u32 {
                let key = number.to_le_bytes();
                let expires_at_ms = (number % 4 == 1).then_some(50);
                let item = Item { expires_at_ms, ..Item::value(&key, b"value") };
                let item = if round == 1 && number % 4 == 0 { Item::tombstone(&key) } else { item };
                sample.note(hasher.hash(&key), &item, 20);
            }
        }
        for (now_ms, expected) in [(10, 75_000.0), (60, 50_000.0)] {
            let live = sample.live(now_ms);
            assert!((live.items / expected - 1.0).abs() < 0.03, "{live:?}");
            assert!((live.bytes / (20.0 * expected) - 1.0).abs() < 0.03, "{live:?}");
        }
        let mut bytes = Vec::new();
        sample.write_to(&mut bytes);
        let read = LiveSample::read_from(&bytes).unwrap();
        assert_eq!((read.live(10), read.live(60)), (sample.live(10), sample.live(60)));
        for cut in [1, bytes.len() - 1] {
            assert!(LiveSample::read_from(&bytes[..cut]).is_none());
        }
    }
}
