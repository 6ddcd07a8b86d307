//! Merges streams of items in the order of their hashes: in batches, or item by item.

mod merged;
mod pull_merge;
mod young;

pub(crate) use merged::{Ascending, for_each_merged, scan_streams};
pub(crate) use pull_merge::PullMerge;
pub(crate) use young::{AGE_MAX, YoungCursor, YoungItems, YoungRange};
