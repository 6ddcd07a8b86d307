//! Tables: immutable files of items, each with its own indexes and filters.
//!
//! A file contains one section per keyspace and range of hashes: a freeze of the log writes many small ones into one
//! file, a merge one large one. `docs/format.md` describes each byte of this layout:
//!
//! ```text
//! header page | pages of section 0 | pages of section 1 | ... | filters and indexes | directory | trailer
//! ```
//!
//! The names of a semi-sorted section's prefixes, if listed, are in pages directly after its own.
//!
//! [`TableWriter`] writes a file front to back. [`Table::open`] reads its end; each [`Section`] then answers lookups
//! (one page read each) and scans ([`SectionScanner`]). [`IndexMemory`] bounds what filters and indexes take:
//!
//! ```text
//!  TableWriter              Table, SectionScanner, NameScanner, SalvagedPages
//!       │                        │
//!       │                   Section ── IndexMemory      one section; the bound of memory
//!       │                        │
//!       └──────────┬─────────────┘
//!             SectionIndex                              filter and page index of a section
//!                  │
//!             Page, StoredDirectory                     bytes of a page, bytes of the directory
//!                  │
//!             Item                                      bytes of an item
//! ```
//!
//! Sections of hash layout are SILT's HashStore, those of sorted layout its SortedStore (Lim et al., SOSP 2011, §3.2
//! and §3.3). We differ: items have any size and are packed into pages, and page fences can replace the trie. Sections
//! of bucketed layout are LSM-trie's HTables (Wu's thesis, §4.2.4), with the filters of the tables below them.
//!
//! Architecture invariant: tables know nothing of logs, versions or levels, and never read the clock.
#![forbid(unsafe_code)]

mod bucket_check;
mod bucket_group;
mod bucket_section;
mod cluster_builder;
mod cluster_filter;
mod columns;
mod covering_builder;
mod covering_filter;
mod degradation;
mod dense_trie;
mod directory;
mod error;
mod expiry;
mod filter_builder;
mod filtered_section;
mod frame;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod fuzz;
mod group_scan;
mod hash_marks;
mod index;
mod index_around;
mod index_builder;
mod index_locate;
mod index_memory;
mod index_parts;
mod index_target;
pub mod item;
mod key_probe;
mod layout;
mod memory_holder;
mod name_builder;
mod name_scanner;
mod open;
mod output;
mod own_filter;
mod page;
mod page_builder;
mod page_list;
mod page_slots;
mod paged_trie;
mod prefix_counts;
mod read_ahead;
mod rule_bytes;
mod salvage;
mod scan_scope;
mod scanner;
mod search;
mod section;
mod section_range;
mod section_spec;
mod segment_span;
mod slot_pages_builder;
mod stored_directory;
mod straddles;
#[cfg(test)]
mod tests;
mod totals;
mod unsynced_table;
mod verify;
mod waiting_room;
mod worth_sums;
mod writer;

pub use bucket_section::BucketFilter;
pub use cluster_builder::{ClusterSpec, Head};
pub use covering_builder::CoveringSpec;
pub use degradation::Degradation;
pub use directory::{IndexKind, SectionEntry};
pub use error::Error;
pub use filter_builder::FilterKind;
pub use frame::TRAILER_BYTES;
pub use group_scan::GROUP_BYTES;
pub use index_builder::SortedIndex;
pub use index_memory::{Charge as TableCharge, IndexMemory, Loan};
pub use index_target::IndexTarget;
pub use layout::Layout;
pub use name_scanner::{ListedName, NameScanner};
pub use open::Table;
pub use output::{OutputOptions, WRITE_BYTES, WRITES_MAX};
pub use page::{ITEM_BYTES_MAX, PAGE_BYTES};
pub use page_builder::pages_expected;
pub use page_list::{PageList, PageRead};
pub use prefix_counts::PrefixCounts;
pub use read_ahead::READS_AHEAD_MAX;
pub use salvage::{SalvagedItem, SalvagedPages, is_of_other_version, salvage_file};
pub use scanner::{READ_AHEAD_BYTES, SectionScanner};
pub use search::Searched;
pub use section::{Asked, ColumnRead, Made, Section, Verdict};
pub use section_range::SectionRange;
pub use section_spec::SectionSpec;
pub use segment_span::SegmentSpan;
pub use stored_directory::StoredDirectory;
pub use unsynced_table::UnsyncedTable;
pub use waiting_room::{HeldRoom, WaitingRoom};
pub use writer::TableWriter;
