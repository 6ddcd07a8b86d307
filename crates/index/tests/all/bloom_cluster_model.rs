//! The BloomCluster compared with the sets of keys that its runs have.

use alluvium_base::KeyHash;
use alluvium_base::checksum::checksum64;
use alluvium_index::bloom_cluster::{
    BloomCluster, ClusterDirectory, ClusterWriter, Column, ColumnBuilder, Packing, RUNS_MAX,
};
use proptest::prelude::*;

const PAGE_LEN: u64 = 4096;

fn hash(number: u64) -> KeyHash {
    KeyHash::from_halves(checksum64(&number.to_le_bytes(), 1), checksum64(&number.to_le_bytes(), 2))
}

/// The keys of each bucket of each run.
type Runs = Vec<Vec<Vec<KeyHash>>>;

/// Runs of `buckets` buckets with up to `bucket_keys` keys each.
fn runs(buckets: usize, bucket_keys: usize, run_count: usize, seed: u64) -> Runs {
    let mut next = seed << 32;
    let mut bucket = || {
        let keys = hash(next).high() as usize % (bucket_keys + 1);
        (0..=keys)
            .map(|_| {
                next += 1;
                hash(next)
            })
            .skip(1)
            .collect()
    };
    (0..run_count).map(|_| (0..buckets).map(|_| bucket()).collect()).collect()
}

fn append(cluster: &BloomCluster, bits_per_key: f64, run: &[Vec<KeyHash>]) -> BloomCluster {
    cluster.with_run(bits_per_key, |bucket, hashes| hashes.extend_from_slice(&run[bucket as usize]))
}

fn cluster(buckets: u64, bits_per_key: f64, runs: &Runs) -> BloomCluster {
    runs.iter()
        .fold(BloomCluster::empty(buckets, bits_per_key), |cluster, run| append(&cluster, bits_per_key, run))
}

/// Checks that every key is found in its run, and absent keys in few.
fn check(cluster: &BloomCluster, runs: &Runs) {
    assert_eq!(cluster.runs() as usize, runs.len());
    for (run, buckets) in (0..).zip(runs) {
        for (bucket, hashes) in (0..).zip(buckets) {
            for &hash in hashes {
                let found = cluster.runs_of(bucket, hash);
                assert!(found.contains(run));
                assert!(found.len() <= cluster.runs());
            }
        }
    }
    assert!(cluster.runs_of(cluster.buckets(), hash(1)).is_empty());
}

proptest! {
    #[test]
    fn every_key_is_in_the_runs_named(
        buckets in 1usize..12, bucket_keys in 0usize..150, run_count in 0usize..20, seed in 0u64..1000,
        bits_per_key in 1.0f64..40.0, dropped: u32,
    ) {
        let mut runs = runs(buckets, bucket_keys, run_count, seed);
        let cluster = cluster(buckets as u64, bits_per_key, &runs);
        check(&cluster, &runs);
        prop_assert_eq!(&BloomCluster::from_bytes(&cluster.to_bytes()).unwrap(), &cluster);

        let keeps = |run: u32| dropped >> run & 1 == 0;
        let fewer = cluster.with_runs(keeps);
        let mut number = 0;
        runs.retain(|_| {
            number += 1;
            keeps(number - 1)
        });
        check(&fewer, &runs);
        if run_count > 0 {
            let again = append(&fewer, bits_per_key, &runs.first().cloned().unwrap_or(vec![Vec::new(); buckets]));
            prop_assert_eq!(again.runs(), fewer.runs() + 1);
        }
    }

    #[test]
    fn columns_on_flash_are_those_in_memory(
        buckets in 1usize..40, bucket_keys in 0usize..150, run_count in 1usize..30, seed in 0u64..1000,
    ) {
        let runs = runs(buckets, bucket_keys, run_count, seed);
        let in_memory = cluster(buckets as u64, 16.0, &runs);
        let mut writer = ClusterWriter::new(Packing::Pages);
        let mut column = ColumnBuilder::new(16.0);
        let (mut file, mut out) = (Vec::new(), Vec::new());
        for bucket in 0..buckets {
            column.clear();
            runs.iter().for_each(|run| column.add(&run[bucket]));
            writer.push(&column, &mut out);
            // A streaming writer may empty its buffer at any time.
            file.append(&mut out);
        }
        let directory = writer.finish();
        prop_assert_eq!(directory.len(), file.len() as u64);
        let directory = ClusterDirectory::from_bytes(&directory.to_bytes()).unwrap();
        prop_assert_eq!(directory.runs() as usize, run_count);
        prop_assert!(directory.column(buckets as u64).is_none());
        for bucket in 0..buckets as u64 {
            let range = directory.column(bucket).unwrap();
            let bytes = &file[range.offset as usize..][..range.length as usize];
            let column = Column::open(bytes, bucket).unwrap();
            let last = range.offset + column.len() as u64 - 1;
            let pages = last / PAGE_LEN - range.offset / PAGE_LEN + 1;
            prop_assert_eq!(pages, (column.len() as u64).div_ceil(PAGE_LEN));
            prop_assert!((range.offset + range.length).div_ceil(PAGE_LEN) == last / PAGE_LEN + 1);
            for hash in (0..50).map(hash).chain(runs[0][bucket as usize].iter().copied()) {
                prop_assert_eq!(column.runs_of(hash), in_memory.runs_of(bucket, hash));
            }
            prop_assert!(Column::open(bytes, bucket + 1).is_err());
        }
    }
}

#[test]
fn absent_keys_pass_as_few_filters_as_published() {
    let bucket = |run: u64, bucket: u64| (0..33).map(|key| hash(run << 40 | bucket << 20 | key)).collect();
    let runs: Runs = (0..112).map(|run| (0..64).map(|number| bucket(run, number)).collect()).collect();
    let cluster = cluster(64, 16.0, &runs);
    let lookups = 400_000;
    let passed: u32 = (0..lookups).map(|number| cluster.runs_of(number % 64, hash(!number)).len()).sum();
    let rate = f64::from(passed) / lookups as f64;
    assert!(rate < 0.0459 * 1.12, "{rate} a lookup");
}

#[test]
fn as_many_runs_as_there_may_be() {
    let runs: Runs = runs(2, 3, RUNS_MAX as usize, 6);
    check(&cluster(2, 16.0, &runs), &runs);
}

#[test]
fn changed_bytes_are_refused() {
    let cluster = cluster(5, 16.0, &runs(5, 20, 4, 7));
    let bytes = cluster.to_bytes();
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 4;
        assert!(BloomCluster::from_bytes(&changed).is_err(), "byte {place}");
        assert!(BloomCluster::from_bytes(&bytes[..place]).is_err(), "{place} bytes");
    }
}
