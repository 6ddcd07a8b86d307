//! Background work: frozen log segments become runs, runs merge into the levels below, and levels into deeper ones.

mod convert;
mod cut;
mod due;
mod flow;
mod garbage;
mod ingest;
mod level_due;
mod level_table;
mod mass;
mod merge;
mod merge_part;
mod merged;
mod prefix_cut;
mod pull_merge;
mod rate_limit;
mod repeats;
mod scheduler;
mod spill;
mod spilled;
mod throttle;
mod young;

pub(crate) use convert::{convert, open_run};
pub(crate) use cut::TableSizes;
pub(crate) use due::{pick, pick_any, pick_of, pick_runs_before, pressure};
pub(crate) use garbage::{drop_expired, give_back_garbage, pick_garbage};
pub(crate) use ingest::{ingest, write_spilled};
pub(crate) use level_table::{Below, begin_ordered, level_spec, tag_bits};
pub(crate) use merge::merge;
pub(crate) use merged::{for_each_merged, scan_streams};
pub(crate) use prefix_cut::cut_prefix;
pub(crate) use pull_merge::PullMerge;
pub(crate) use rate_limit::RateLimit;
pub(crate) use scheduler::Scheduler;
pub(crate) use spill::{Spill, is_spill_file_name};
pub(crate) use throttle::Throttle;
pub(crate) use young::YoungItems;
