//! Background work: frozen log segments become hash runs, hash runs merge into the sorted run.

mod convert;
mod due;
mod garbage;
mod ingest;
mod merge;
mod merged;
mod rate_limit;
mod repeats;
mod scheduler;
mod spill;
mod throttle;
mod young;

pub(crate) use convert::{convert, open_run, tag_bits};
pub(crate) use due::{pick, pick_of, pressure};
pub(crate) use garbage::{drop_expired, give_back_garbage, pick_garbage};
pub(crate) use ingest::{ingest, write_spilled};
pub(crate) use merge::{merge, merged_table_bytes, sorted_index};
pub(crate) use merged::{for_each_merged, scan_sorted};
pub(crate) use rate_limit::RateLimit;
pub(crate) use scheduler::Scheduler;
pub(crate) use spill::{Spill, is_spill_file_name};
pub(crate) use throttle::Throttle;
pub(crate) use young::YoungItems;
