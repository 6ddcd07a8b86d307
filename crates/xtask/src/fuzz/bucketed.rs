//! Fuzz targets of tables in buckets.

use alluvium_base::KeyHash;
use alluvium_base::checksum::checksum64;
use alluvium_index::bucketed::{
    BucketDirectory, BucketDirectoryBuilder, BucketRules, GroupRange, Home, Migration, SizedItem, balance,
    destination_of, read_migrations, write_migrations,
};

use super::registry::Target;

/// All targets of the module `bucketed` of `alluvium-index`.
pub fn targets() -> Vec<Target> {
    vec![
        Target { name: "bucket-directory", run: bucket_directory, samples: bucket_directory_samples },
        Target { name: "bucket-migrations", run: bucket_migrations, samples: bucket_migrations_samples },
    ]
}

fn hashes(count: u64) -> impl Iterator<Item = KeyHash> {
    let mix = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..count).map(move |number| KeyHash::from_halves(mix(number), mix(mix(number) | 1)))
}

/// Parses the bytes unchanged, and again with a corrected checksum, which is the last word and has the first word as
/// seed.
fn bucket_directory(bytes: &[u8]) {
    let mut sealed = bytes.to_vec();
    if let (Some(body), Some(seed)) = (bytes.len().checked_sub(8), bytes.first_chunk()) {
        let checksum = checksum64(&bytes[..body], u64::from_le_bytes(*seed));
        sealed[body..].copy_from_slice(&checksum.to_le_bytes());
    }
    for bytes in [bytes, &sealed] {
        let Ok(directory) = BucketDirectory::from_bytes(bytes) else { continue };
        for hash in hashes(64).chain([KeyHash::default(), KeyHash::from_halves(u64::MAX, u64::MAX)]) {
            let last = match directory.locate(hash) {
                None => continue,
                Some(Home::Page(page)) => page,
                Some(Home::Pages { first, last }) => {
                    assert!(first <= last);
                    last
                }
            };
            assert!(u64::from(last) < directory.pages());
            let group = directory.group_pages(directory.group_of(hash.high()));
            assert!(u64::from(group.end) <= directory.pages());
        }
    }
}

fn bucket_directory_samples() -> Vec<Vec<u8>> {
    let items: Vec<_> = hashes(700).map(|hash| SizedItem { hash, bytes: 110 }).collect();
    let all = GroupRange { low: 0, high: u64::MAX };
    let rules = BucketRules { capacity_bytes: 4080, first_page: 0 };
    let mut builder = BucketDirectoryBuilder::new(1.0);
    if let Ok(balance) = balance(&items, all, 20, rules) {
        builder.push_group(0, &balance);
    }
    vec![builder.finish(u64::MAX).to_bytes(), BucketDirectoryBuilder::new(1.0).finish(0).to_bytes()]
}

fn bucket_migrations(bytes: &[u8]) {
    if let Ok(migrations) = read_migrations(bytes) {
        let all: Vec<Migration> = migrations.collect();
        let mut written = Vec::new();
        write_migrations(&all, &mut written);
        assert_eq!(written, bytes);
        assert_eq!(destination_of(all.iter().copied(), u32::MAX), all.last().map(|last| last.distance));
    }
}

fn bucket_migrations_samples() -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    write_migrations(
        &[Migration { mark: 7, distance: -3 }, Migration { mark: 1 << 31, distance: 9 }],
        &mut bytes,
    );
    vec![bytes, Vec::new()]
}
