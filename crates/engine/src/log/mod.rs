//! The append-only log that takes every write, shared by all keyspaces; also the write-ahead log.
//!
//! A *segment* is one log file with its content in memory. One is active; older ones are frozen and wait for
//! conversion. A *log store* (SILT §3.1) is one keyspace's view of a segment: its items there, indexed by a cuckoo
//! table per shard.

mod active;
mod append;
mod entry_bound;
mod file_users;
mod group_commit;
mod header;
pub(crate) mod identity;
mod indexing;
pub(crate) mod linked_record;
mod linked_store;
mod options;
mod prefix_list;
mod recycler;
mod retained;

pub(crate) mod record;
mod refusal;
mod refusing;
pub(crate) mod salvage;
pub(crate) mod segment;
mod segment_sync;
pub(crate) mod store;
mod waits;
mod write_through;
pub(crate) mod writer;

pub(crate) use entry_bound::EntryBound;
pub(crate) use file_users::{FileUser, FileUsers};
pub(crate) use header::SegmentHeader;
pub(crate) use linked_store::{LinkedStore, Slots};
pub(crate) use options::LogOptions;
pub(crate) use recycler::Recycler;
pub(crate) use refusal::Refusal;
pub(crate) use retained::{HeldLog, RetainedLog, RetainedSegment};
pub(crate) use segment::Segment;
pub(crate) use store::LogStore;
pub(crate) use writer::{Log, Position};
