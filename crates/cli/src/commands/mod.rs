//! The subcommands, one file each: options and `run`.

pub mod adopt;
pub mod backup;
pub mod bench;
pub mod build_shard;
pub mod calibrate;
pub mod checkpoint;
pub mod commit_build;
pub mod compact;
pub mod completions;
pub mod delete;
pub mod export;
pub mod get;
pub mod import;
pub mod inspect;
pub mod plan;
pub mod put;
pub mod repair;
pub mod restore;
pub mod scan;
pub mod serve;
pub mod stat;
pub mod verify;
pub mod versions;
