//! The tests of the command. In one program, so that it is linked once.

mod backup;
mod bench_store;
mod bulk_build;
mod commands;
mod common;
mod keyspaces_in_files;
mod kill9;
mod maintenance;
mod planning;
mod serve;
mod transfer;
