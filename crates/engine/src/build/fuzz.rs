//! The entry point for fuzzers: the files `SHARD` and `BUILD`, on arbitrary bytes.

use super::header::with_header;
use super::manifest::{self, BuildManifest};
use super::placement::{first_file, shard_range};
use super::shard_manifest::{self, ShardManifest};

/// Both parsers, on the bytes as given and on a sound header before them. What they accept is written again alike.
pub(crate) fn fuzz(bytes: &[u8]) {
    let value = bytes.get(24..).unwrap_or(bytes);
    for bytes in [bytes, &with_header(shard_manifest::MAGIC, value)] {
        if let Ok(shard) = ShardManifest::parse("fuzz", bytes) {
            let range = shard_range(shard.shard, shard.job.shards);
            assert!(range.low <= range.high && first_file(shard.shard) > 0);
            assert!(ShardManifest::parse("fuzz", &shard.encode()).is_ok_and(|again| again == shard));
        }
    }
    for bytes in [bytes, &with_header(manifest::MAGIC, value)] {
        if let Ok(build) = BuildManifest::parse("fuzz", bytes) {
            assert_eq!(build.shards.len(), build.job.shards as usize);
            assert!(BuildManifest::parse("fuzz", &build.encode()).is_ok_and(|again| again == build));
        }
    }
}

/// Sound files.
pub(crate) fn fuzz_samples() -> Vec<Vec<u8>> {
    vec![shard_manifest::sample().encode(), manifest::sample().encode()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_and_what_is_made_of_them_do_no_harm() {
        for sample in fuzz_samples() {
            for at in 0..sample.len() {
                fuzz(&sample[..at]);
                for value in [0, b'9', b'"', 0xff] {
                    let mut damaged = sample.clone();
                    damaged[at] = value;
                    fuzz(&damaged);
                }
            }
        }
    }
}
