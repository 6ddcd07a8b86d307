//! Background work: frozen log segments become runs, runs merge into the levels below, and levels into deeper ones.

mod collect;
mod convert;
mod cut;
mod drop_oldest;
mod due;
mod flow;
mod garbage;
mod ingest;
mod jobs;
mod kept;
mod level_table;
mod mass;
mod merge;
mod merge_part;
mod misplaced;
mod prefix_cut;
mod repeats;
mod replan;
mod shapes;
mod spill;
mod spilled;
mod threads;
mod unplaced_table;

pub(crate) use convert::{convert, convert_oldest};
pub(crate) use drop_oldest::drop_oldest;
pub(crate) use due::{decision, pick, pick_any, pick_of, pick_runs_before, pressure, pressure_of};
pub(crate) use garbage::{drop_expired, give_back_garbage, pick_garbage};
pub(crate) use ingest::{ingest, write_spilled};
pub(crate) use jobs::JOBS;
pub(crate) use level_table::{Below, begin_ordered, tag_bits};
pub(crate) use merge::merge;
pub(crate) use misplaced::{Left, follow_plan, is_moving, left_to_move};
pub(crate) use prefix_cut::cut_prefix;
pub(crate) use replan::{replan, replan_is_due};
pub(crate) use spill::Spill;
pub(crate) use threads::start_threads;
