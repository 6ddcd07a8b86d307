//! The subcommands, one file each: options and `run`.

pub mod bench;
pub mod delete;
pub mod get;
pub mod inspect;
pub mod model;
pub mod put;
pub mod scan;
pub mod serve;
pub mod verify;
