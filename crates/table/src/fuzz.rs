//! Entry points for fuzzers: every parser of table bytes, on arbitrary bytes.
//!
//! None may panic or loop, and what they accept must be usable.

use alluvium_base::KeyHash;
use alluvium_base::checksum::checksum64;
use alluvium_index::fences::{PageFences, SlotFences};
use alluvium_index::hash_filter::HashFilter;
use alluvium_index::three_level::ThreeLevelIndex;
use alluvium_index::trie::Fragments;

use crate::cluster_filter::ClusterFilter;
use crate::covering_filter::CoveringFilter;
use crate::dense_trie::DenseTrie;
use crate::frame::{self, Trailer};
use crate::page::{Layout, PAGE_BYTES, Page};
use crate::paged_trie::PagedTrie;
use crate::stored_directory::StoredDirectory;

/// A page as given, and again with its checksum corrected, so that the fuzzer passes the check.
pub fn page(bytes: &[u8]) {
    let mut padded = [0; PAGE_BYTES];
    let len = bytes.len().min(PAGE_BYTES);
    padded[..len].copy_from_slice(&bytes[..len]);
    let _ = Page::check(bytes, 0, Layout::Hash);
    let checksum = checksum64(&padded[8..], 0);
    padded[..8].copy_from_slice(&checksum.to_le_bytes());
    for layout in [Layout::Hash, Layout::Sorted, Layout::Bucketed, Layout::Names] {
        if let Ok(page) = Page::check(&padded, 0, layout) {
            let _ = page.items();
            let _ = page.begun();
            let _ = page.migrations();
            let _ = page.moved_to(KeyHash::from_halves(1, 1 << 62), 7);
            let _ = padded[page.carried_range()].len();
            for tag in 0..=255 {
                let _ = page.find(tag, b"key");
            }
        }
    }
}

/// A trailer, and the directory it leads to.
pub fn trailer(bytes: &[u8]) {
    let _ = Trailer::decode(bytes, "fuzz", bytes.len() as u64);
}

/// A directory whose checksum is right.
pub fn directory(bytes: &[u8]) {
    if let Ok(entries) = StoredDirectory::new(bytes, u64::MAX).and_then(|directory| directory.entries()) {
        for entry in entries {
            let _ = entry.hasher.hash(b"key");
        }
    }
}

/// The header of a file.
pub fn header(bytes: &[u8]) {
    let _ = frame::decode_header(bytes, "fuzz");
}

/// The index block of a section, without its checksum.
pub fn index(bytes: &[u8]) {
    let hash = KeyHash::from_halves(1 << 63, 1 << 40);
    let _ = SlotFences::from_bytes(bytes).map(|fences| fences.page_of(7));
    let _ = PageFences::from_bytes(bytes).map(|fences| fences.lookup(hash.high()));
    let _ =
        ThreeLevelIndex::from_bytes(bytes).map(|index| (index.lookup(hash), index.prefix_pages(hash.high())));
    let _ = PagedTrie::from_bytes(bytes).map(|trie| trie.lookup(hash, true));
    let fragments = Fragments::from_bytes(bytes);
    let _ = DenseTrie::from_bytes(bytes).map(|trie| trie.lookup(hash, fragments.as_ref().ok(), true));
    for filter in [&[][..], bytes] {
        if let Ok(cluster) = ClusterFilter::decode(bytes, (0, u64::MAX), filter) {
            let _ = (cluster.runs_of(hash), cluster.column_place(hash));
        }
        if let Ok(covering) = CoveringFilter::decode(bytes, filter) {
            assert!(covering.runs_of(hash).is_none_or(|runs| runs.len() <= 8));
        }
    }
    if let Ok(covering) = CoveringFilter::decode(&[0; 16], bytes) {
        let _ = (covering.runs_of(hash), covering.memory_bytes());
    }
    let _ = HashFilter::from_bytes(bytes).map(|filter| filter.candidates(hash).count());
}
