//! Background work: frozen log segments become hash runs, hash runs merge into the sorted run.

mod convert;
mod due;
mod garbage;
mod ingest;
mod merge;
mod merge_part;
mod merged;
mod rate_limit;
mod repeats;
mod scheduler;
mod spill;
mod spilled;
mod throttle;
mod young;

pub(crate) use convert::{convert, open_run, tag_bits};
pub(crate) use due::{pick, pick_of, pressure};
pub(crate) use garbage::{drop_expired, give_back_garbage, pick_garbage};
pub(crate) use ingest::{ingest, write_spilled};
pub(crate) use merge::{merge, merged_table_bytes};
pub(crate) use merge_part::sorted_index;
pub(crate) use merged::{for_each_merged, scan_sorted};
pub(crate) use rate_limit::RateLimit;
pub(crate) use scheduler::Scheduler;
pub(crate) use spill::{Spill, is_spill_file_name};
pub(crate) use throttle::Throttle;
pub(crate) use young::YoungItems;
