//! Background work: frozen log segments become hash runs, hash runs merge into the sorted run.

mod convert;
mod merge;
mod merged;
mod rate_limit;
mod scheduler;
mod throttle;
mod young;

pub(crate) use convert::{convert, open_run, tag_bits};
pub(crate) use merge::{drop_expired, merge, pick, pressure, sorted_index};
pub(crate) use merged::{for_each_merged, scan_sorted};
pub(crate) use rate_limit::RateLimit;
pub(crate) use scheduler::Scheduler;
pub(crate) use throttle::Throttle;
pub(crate) use young::YoungItems;
