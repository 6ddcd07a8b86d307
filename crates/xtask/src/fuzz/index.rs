//! Targets for the stored forms of index structures.
//!
//! Each input is used unchanged, and once more with its checksum corrected, so that the checks after it are reached. If
//! a structure accepts an input, it must be able to answer queries from it.

use alluvium_base::KeyHash;
use alluvium_base::checksum::checksum64;
use alluvium_index::bloom_cluster::{
    BloomCluster, ClusterDirectory, ClusterWriter, Column, ColumnBuilder, Packing,
};
use alluvium_index::chain_region::{ChainRegion, Choice, Pointer, SlotShape};
use alluvium_index::cuckoo::CuckooTable;
use alluvium_index::elias_fano::EliasFano;
use alluvium_index::fences::{PageFences, SlotFences, SlotFencesBuilder};
use alluvium_index::hash_filter::{HashFilter, SlotPage, SlotPages};
use alluvium_index::multi_level_filter::{Known, MultiLevelFilter, MultiLevelFilterBuilder};
use alluvium_index::static_filter::StaticFilter;
use alluvium_index::three_level::{SuffixCode, ThreeLevelBuilder, ThreeLevelConfig, ThreeLevelIndex};
use alluvium_index::trie::{Fragments, Granularity, Trie, TrieBuilder, TrieConfig};

use super::registry::Target;

/// All targets of the crate `alluvium-index`.
pub fn targets() -> Vec<Target> {
    vec![
        Target { name: "elias-fano", run: elias_fano, samples: || vec![EliasFano::new(&highs()).to_bytes()] },
        Target { name: "page-fences", run: page_fences, samples: page_fences_samples },
        Target { name: "slot-fences", run: slot_fences, samples: slot_fences_samples },
        Target { name: "chain-region", run: chain_region, samples: chain_region_samples },
        Target { name: "cuckoo-table", run: cuckoo_table, samples: || vec![table().to_bytes()] },
        Target { name: "hash-filter", run: hash_filter, samples: hash_filter_samples },
        Target { name: "slot-pages", run: slot_pages, samples: slot_pages_samples },
        Target { name: "multi-level-filter", run: multi_level_filter, samples: multi_level_filter_samples },
        Target { name: "trie", run: trie, samples: trie_samples },
        Target { name: "fragments", run: fragments, samples: fragments_samples },
        Target { name: "bloom-cluster", run: bloom_cluster, samples: || vec![cluster().to_bytes()] },
        Target { name: "filter-column", run: filter_column, samples: filter_column_samples },
        Target { name: "cluster-directory", run: cluster_directory, samples: cluster_directory_samples },
        Target { name: "static-filter", run: static_filter, samples: static_filter_samples },
        Target { name: "three-level", run: three_level, samples: three_level_samples },
    ]
}

const CHECKSUM_BYTES: usize = 8;

/// `bytes` with the checksum at their end corrected for `seed`.
fn sealed(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(body_bytes) = bytes.len().checked_sub(CHECKSUM_BYTES) {
        let checksum = checksum64(&bytes[..body_bytes], seed);
        bytes[body_bytes..].copy_from_slice(&checksum.to_le_bytes());
    }
    bytes
}

/// The first word: the seed of the structures that `elias_fano::wire` writes.
fn first_word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

/// Hashes to query: the ends of the space, and some that are in the samples.
fn probes() -> impl Iterator<Item = KeyHash> {
    let ends = [KeyHash(0), KeyHash(u128::MAX)];
    ends.into_iter().chain(hashes().into_iter().step_by(17))
}

fn hashes() -> Vec<KeyHash> {
    let mut hashes: Vec<KeyHash> = (0..300_u64)
        .map(|number| {
            KeyHash::from_halves(checksum64(&number.to_le_bytes(), 1), checksum64(&number.to_le_bytes(), 2))
        })
        .collect();
    hashes.sort_unstable();
    hashes
}

fn highs() -> Vec<u64> {
    hashes().into_iter().map(KeyHash::high).collect()
}

fn elias_fano(bytes: &[u8]) {
    for bytes in [bytes, &sealed(bytes, first_word(bytes))] {
        if let Ok(list) = EliasFano::from_bytes(bytes) {
            assert_eq!(list.iter().take(10_000).count() as u64, list.len().min(10_000));
            for hash in probes() {
                let _ = (list.last_at_most(hash.high()), list.counts(hash.high()), list.get(hash.low()));
            }
        }
    }
}

fn multi_level_filter(bytes: &[u8]) {
    for bytes in [bytes, &sealed(bytes, 1)] {
        if let Ok(filter) = MultiLevelFilter::from_bytes(bytes) {
            assert!(probes().all(|hash| filter.runs(hash).count() <= 8));
        }
    }
}

/// With and without a secondary table, and one with ambiguous keys.
fn multi_level_filter_samples() -> Vec<Vec<u8>> {
    let sample = |fingerprint_bits, known| {
        let mut builder = MultiLevelFilterBuilder::new(400, fingerprint_bits);
        for (number, hash) in hashes().into_iter().enumerate() {
            builder.insert(hash, (number / 40) as u8, known).expect("there is room");
        }
        builder.finish().to_bytes()
    };
    vec![sample(12, Known::Absent), sample(4, Known::Absent), sample(4, Known::Unknown)]
}

fn page_fences(bytes: &[u8]) {
    for bytes in [bytes, &sealed(bytes, first_word(bytes))] {
        if let Ok(fences) = PageFences::from_bytes(bytes) {
            for hash in probes() {
                let _ = fences.lookup(hash.high());
            }
        }
    }
}

const CHAIN_SHAPES: [SlotShape; 2] =
    [SlotShape { pointer_bytes: 4, filter_bytes: 0 }, SlotShape { pointer_bytes: 5, filter_bytes: 10 }];

fn chain_region(bytes: &[u8]) {
    for bytes in [bytes, &sealed(bytes, first_word(bytes))] {
        for shape in CHAIN_SHAPES {
            let Ok((mut region, len)) = ChainRegion::read_from(bytes, shape, 3) else { continue };
            assert!(len <= bytes.len());
            for hash in probes() {
                let slot = match region.choose(hash) {
                    Choice::Slot(slot) | Choice::Walk(slot, _) => slot,
                };
                region.push(slot, hash, Pointer(7));
                assert!(region.chains_of(hash).any(|chain| chain == (slot, Pointer(7))));
            }
        }
    }
}

fn chain_region_samples() -> Vec<Vec<u8>> {
    let sample = |shape| {
        let mut region = ChainRegion::new(shape, 3, 20);
        for (number, hash) in (1..).zip(hashes()) {
            if let Choice::Slot(slot) = region.choose(hash) {
                region.push(slot, hash, Pointer(number));
            }
        }
        let mut bytes = Vec::new();
        region.write_to(&mut bytes);
        bytes
    };
    CHAIN_SHAPES.map(sample).to_vec()
}

fn page_fences_samples() -> Vec<Vec<u8>> {
    [0, 4, 8].map(|bits| PageFences::from_boundaries(highs(), bits).to_bytes()).to_vec()
}

fn slot_fences(bytes: &[u8]) {
    for bytes in [bytes, &sealed(bytes, first_word(bytes))] {
        if let Ok(fences) = SlotFences::from_bytes(bytes) {
            for slot in [0, 1, 77, u64::MAX] {
                let _ = (fences.page_of(slot), fences.first_slot(slot));
            }
        }
    }
}

fn slot_fences_samples() -> Vec<Vec<u8>> {
    let mut builder = SlotFencesBuilder::new();
    (0..100).for_each(|page| builder.push_page(page * 31));
    vec![builder.finish().to_bytes()]
}

fn slot_pages(bytes: &[u8]) {
    if let Ok(pages) = SlotPages::from_bytes(bytes) {
        let is_within = |page: SlotPage| u64::from(page.page) + u64::from(page.goes_on) < pages.pages();
        assert!([0, 77, u32::MAX].into_iter().filter_map(|slot| pages.page_of(slot)).all(is_within));
        assert!(probes().flat_map(|hash| pages.pages_of_buckets(hash)).all(is_within));
    }
}

fn slot_pages_samples() -> Vec<Vec<u8>> {
    vec![SlotPages::from_table(&table(), 1 << 10).to_bytes()]
}

fn table() -> CuckooTable {
    let table = CuckooTable::with_entries(400);
    for (offset, hash) in (0..).zip(hashes()) {
        let _ = table.insert(hash, offset);
    }
    table
}

fn cuckoo_table(bytes: &[u8]) {
    for bytes in [bytes, &sealed(bytes, 0)] {
        if let Ok(table) = CuckooTable::from_bytes(bytes) {
            let _ = table.entries().count();
            for (offset, hash) in (0..).zip(probes()) {
                let _ = (table.candidates(hash), table.insert(hash, offset));
            }
        }
    }
}

fn hash_filter(bytes: &[u8]) {
    for bytes in [bytes, &sealed(bytes, 0)] {
        if let Ok(filter) = HashFilter::from_bytes(bytes) {
            assert_eq!(filter.occupied().count(), filter.len());
            for hash in probes() {
                assert_eq!(filter.may_contain(hash), filter.candidates(hash).count() > 0);
            }
        }
    }
}

fn hash_filter_samples() -> Vec<Vec<u8>> {
    [4, 12, 15].map(|bits| HashFilter::from_table(&table(), bits).to_bytes()).to_vec()
}

fn trie(bytes: &[u8]) {
    for bytes in [bytes, &sealed(bytes, first_word(bytes))] {
        if let Ok(trie) = Trie::from_bytes(bytes) {
            for hash in probes() {
                let _ = trie.lookup(hash).map(|position| trie.ranks_at(position));
            }
        }
    }
}

fn fragments(bytes: &[u8]) {
    for bytes in [bytes, &sealed(bytes, first_word(bytes))] {
        if let Ok(fragments) = Fragments::from_bytes(bytes) {
            for hash in probes() {
                let _ = [0, 1, fragments.len(), u64::MAX / 64].map(|rank| fragments.may_be(rank, hash));
            }
        }
    }
}

fn fragments_samples() -> Vec<Vec<u8>> {
    let sample = |bits| {
        let mut fragments = Fragments::new(bits);
        hashes().into_iter().for_each(|hash| fragments.push(hash));
        fragments.to_bytes()
    };
    [1, 8, 13, 32].map(sample).to_vec()
}

fn trie_samples() -> Vec<Vec<u8>> {
    let granularities =
        [Granularity::Key, Granularity::RegularPage { keys_per_page: 16 }, Granularity::ListedPage];
    granularities
        .map(|granularity| {
            let config =
                TrieConfig { granularity, bucket_keys_mean: 32, fragment_bits: 3, ..Default::default() };
            let mut builder = TrieBuilder::new(hashes().len() as u64, config);
            for (number, hash) in (1..).zip(hashes()) {
                builder.push(hash);
                if granularity == Granularity::ListedPage && number % 20 == 0 {
                    builder.end_page();
                }
            }
            builder.finish().to_bytes()
        })
        .to_vec()
}

/// The trie of prefixes has its own checksum, which is not corrected, so mutations below it are refused.
fn three_level(bytes: &[u8]) {
    for bytes in [bytes, &sealed(bytes, first_word(bytes))] {
        if let Ok(index) = ThreeLevelIndex::from_bytes(bytes) {
            for hash in probes() {
                let _ = (index.lookup(hash), index.prefix_pages(hash.high()));
                if let Some(found) = index.lookup(KeyHash::from_halves(hash.low(), hash.high())) {
                    assert!(found.first <= found.last);
                }
            }
        }
    }
}

/// Both forms of the third level; small groups, large ones, one of all items, and page numbers with gaps.
fn three_level_samples() -> Vec<Vec<u8>> {
    let mut samples = Vec::new();
    for suffix_code in [SuffixCode::Partial, SuffixCode::Trie] {
        for groups in [1, 12, 300] {
            let config = ThreeLevelConfig { suffix_code, ..ThreeLevelConfig::new(300, groups) };
            let group_of = |high: u64| checksum64(&(high % groups).to_le_bytes(), 1);
            let mut items: Vec<KeyHash> =
                highs().into_iter().map(|high| KeyHash::from_halves(group_of(high), high)).collect();
            items.sort_unstable();
            let mut builder = ThreeLevelBuilder::new(config);
            let page = |number: u64| number / 17 + if groups == 12 { number / 100 } else { 0 };
            (0..).zip(items).for_each(|(number, hash)| builder.push(hash, page(number)));
            samples.push(builder.finish().to_bytes());
        }
    }
    samples
}

/// Five runs of four buckets.
fn cluster() -> BloomCluster {
    (0..5).fold(BloomCluster::empty(4, 16.0), |cluster, run| {
        cluster.with_run(16.0, |bucket, out| {
            out.extend(hashes().into_iter().skip(run * 20 + bucket as usize).step_by(30));
        })
    })
}

fn bloom_cluster(bytes: &[u8]) {
    for bytes in [bytes, &sealed(bytes, first_word(bytes))] {
        if let Ok(cluster) = BloomCluster::from_bytes(bytes) {
            for hash in probes() {
                let bucket = hash.low() % cluster.buckets().max(1);
                assert!(cluster.runs_of(bucket, hash).len() <= cluster.runs());
            }
        }
    }
}

/// The checksum of a column is at its beginning.
fn filter_column(bytes: &[u8]) {
    let mut sealed = bytes.to_vec();
    if let Some((checksum, body)) = sealed.split_at_mut_checked(CHECKSUM_BYTES) {
        checksum.copy_from_slice(&checksum64(body, 7).to_le_bytes());
    }
    for bytes in [bytes, &sealed] {
        if let Ok(column) = Column::open(bytes, 7) {
            assert!(probes().all(|hash| column.runs_of(hash).len() <= column.runs()));
            let mut copy = ColumnBuilder::new(f64::from(column.probes()) / std::f64::consts::LN_2);
            if copy.probes() == column.probes() {
                copy.copy(&column, |run| run % 2 == 0);
                assert_eq!(copy.runs(), column.runs().div_ceil(2));
            }
        }
    }
}

fn filter_column_samples() -> Vec<Vec<u8>> {
    let mut column = ColumnBuilder::new(16.0);
    [0, 33, 1, 200].into_iter().for_each(|keys| column.add(&hashes()[..keys]));
    let (mut writer, mut out) = (ClusterWriter::new(Packing::Dense), Vec::new());
    (0..8).for_each(|_| {
        out.clear();
        writer.push(&column, &mut out);
    });
    vec![out]
}

fn cluster_directory(bytes: &[u8]) {
    for bytes in [bytes, &sealed(bytes, first_word(bytes))] {
        if let Ok(directory) = ClusterDirectory::from_bytes(bytes) {
            for bucket in [0, 1, 2, directory.buckets(), u64::MAX] {
                let Some(range) = directory.column(bucket) else { continue };
                assert!(range.offset.saturating_add(range.length) <= directory.len());
            }
        }
    }
}

fn cluster_directory_samples() -> Vec<Vec<u8>> {
    let mut writer = ClusterWriter::new(Packing::Pages);
    let mut column = ColumnBuilder::new(16.0);
    for keys in 0..100 {
        column.clear();
        column.add(&hashes()[..keys]);
        writer.push(&column, &mut Vec::new());
    }
    vec![writer.finish().to_bytes()]
}

fn static_filter(bytes: &[u8]) {
    for bytes in [bytes, &sealed(bytes, first_word(bytes))] {
        if let Ok(filter) = StaticFilter::from_bytes(bytes) {
            let found = probes().filter(|hash| filter.may_contain(*hash)).count();
            assert!(found == 0 || !filter.is_empty());
        }
    }
}

fn static_filter_samples() -> Vec<Vec<u8>> {
    [(0, 3), (300, 12)].map(|(keys, width)| StaticFilter::new(&hashes()[..keys], width).to_bytes()).to_vec()
}
