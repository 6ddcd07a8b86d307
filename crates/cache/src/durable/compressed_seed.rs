//! What the simulation chooses for seeds that compress: codecs, keys, and dictionaries.

use std::collections::HashMap;

use crate::zone::Codec;

use super::core::Core;
use super::simulated::SimulatedMedium;

/// The codec of a seed that compresses.
pub(super) fn codec_of(_seed: u64) -> Codec {
    #[cfg(feature = "zstd")]
    if _seed / 8 % 2 == 1 {
        return Codec::Zstd;
    }
    Codec::Lz4
}

/// Keys that have nothing in common.
pub(super) fn simple(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| format!("key {number}").into_bytes()).collect()
}

/// Keys of which many have the bucket and the tag of another.
pub(super) fn alike(core: &Core<SimulatedMedium>, count: usize) -> Vec<Vec<u8>> {
    let (mut first, mut keys) = (HashMap::new(), Vec::new());
    for number in 0..20_000 {
        let key = format!("pair {number}").into_bytes();
        let hash = core.shared.hash(&key);
        let part = core.part(hash);
        let sought = part.sought(hash, &[]);
        if let Some(other) = first.insert((part.number, sought.bucket, sought.tag), key.clone()) {
            keys.extend([other, key]);
        }
        if keys.len() >= count {
            return keys;
        }
    }
    keys.extend(simple(count - keys.len()));
    keys
}

/// Dictionaries that were learned from values of several kinds.
#[cfg(feature = "zstd")]
pub(super) fn dictionaries() -> &'static [Vec<u8>] {
    static ALL: std::sync::OnceLock<Vec<Vec<u8>>> = std::sync::OnceLock::new();
    ALL.get_or_init(|| {
        let learn = |kind: usize| {
            let samples: Vec<String> = (0..2000)
                .map(|number| format!("{kind} of {number}..........key {}.....", number * 7919 % 1000))
                .collect();
            let lens: Vec<usize> = samples.iter().map(String::len).collect();
            crate::zone::Learned::train(samples.concat().as_bytes(), &lens, 1024)
        };
        (0..7).filter_map(learn).collect()
    })
}
