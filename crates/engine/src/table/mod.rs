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
//! (one page read each) and scans ([`SectionScanner`]). Sections of hash layout are SILT's HashStore, those of sorted
//! layout its SortedStore (Lim et al., SOSP 2011, §3.2 and §3.3). We differ: items have any size and are packed into
//! pages, and page fences can replace the trie. Sections of bucketed layout are LSM-trie's HTables (Wu's thesis,
//! §4.2.4), with the filters of the tables below them.
//!
//! Architecture invariant: tables know nothing of logs, versions or levels, and never read the clock.

mod bucket_check;
mod bucket_group;
mod bucket_section;
mod cluster_filter;
mod covering_builder;
mod covering_filter;
mod directory;
mod error;
mod expiry;
mod filter_builder;
mod filtered_section;
mod frame;
#[cfg(any(test, feature = "simulation"))]
pub(crate) mod fuzz;
mod group_scan;
mod hash_marks;
mod index;
mod index_around;
mod index_builder;
mod index_memory;
mod index_parts;
mod key_probe;
mod layout;
mod name_builder;
mod name_scanner;
mod open;
mod output;
mod own_filter;
mod page;
mod page_builder;
mod page_list;
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
mod stored_directory;
#[cfg(test)]
mod tests;
mod totals;
mod unsynced_table;
mod verify;
mod waiting_room;
mod writer;

pub(crate) use bucket_section::BucketFilter;
pub(crate) use cluster_filter::ClusterSpec;
pub(crate) use covering_builder::CoveringSpec;
pub(crate) use directory::{IndexKind, SectionEntry};
pub(crate) use error::Error;
pub(crate) use filter_builder::FilterKind;
pub(crate) use frame::TRAILER_BYTES;
pub(crate) use group_scan::GROUP_BYTES;
pub(crate) use index_builder::SortedIndex;
pub(crate) use index_memory::{Charge as TableCharge, Degradation, IndexMemory, Loan};
pub(crate) use name_scanner::{ListedName, NameScanner};
pub(crate) use open::Table;
pub(crate) use output::{OutputOptions, WRITE_BYTES, WRITES_MAX};
pub(crate) use page::Layout;
pub(crate) use page::{ITEM_BYTES_MAX, PAGE_BYTES};
pub(crate) use page_builder::pages_expected;
pub(crate) use page_list::{PageList, PageRead};
pub(crate) use prefix_counts::PrefixCounts;
pub(crate) use read_ahead::READS_AHEAD_MAX;
pub(crate) use salvage::{SalvagedItem, SalvagedPages, is_of_other_version, salvage_file};
pub(crate) use scanner::{READ_AHEAD_BYTES, SectionScanner};
pub(crate) use search::Searched;
pub(crate) use section::{Asked, ColumnRead, Section, Verdict};
pub(crate) use section_range::SectionRange;
pub(crate) use section_spec::SectionSpec;
pub(crate) use segment_span::SegmentSpan;
pub(crate) use stored_directory::StoredDirectory;
pub(crate) use unsynced_table::UnsyncedTable;
pub(crate) use waiting_room::{HeldRoom, WaitingRoom};
pub(crate) use writer::TableWriter;
