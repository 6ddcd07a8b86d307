//! The tests of the index structures that do not run under loom. In one program, so that it is linked once.
#![cfg(not(loom))]

mod bloom_cluster_model;
mod bucketed_model;
mod chain_region_model;
mod cuckoo_model;
mod cuckoo_stress;
mod elias_fano_agrees_with_binary_search;
mod fences_find_the_page;
mod hash_filter_model;
mod multi_level_filter_model;
mod slb_model;
mod slb_table;
mod slb_threads;
mod static_filter_model;
mod three_level_finds_the_page;
mod trie_agrees_with_sorted_keys;
