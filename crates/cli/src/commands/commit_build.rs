//! `alluvium commit-build`.

use std::path::PathBuf;

use alluvium::{CommitOptions, abort_build, commit_build};
use serde_json::json;

use crate::failure::Failure;
use crate::output::JsonOption;

/// Options of `commit-build`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Directory of the build
    #[arg(value_name = "BUILD")]
    root: PathBuf,
    /// Directory of a shard in it, if not all directories with a finished shard count; may be given several times
    #[arg(long, value_name = "NAME")]
    directory: Vec<String>,
    /// Read all files and check them by their checksums, not only by their lengths
    #[arg(long)]
    checksums: bool,
    /// Remove all shards instead, finished or not; refused if the build is committed
    #[arg(long, conflicts_with_all = ["directory", "checksums"])]
    abort: bool,
    #[command(flatten)]
    output: JsonOption,
}

/// Commits a bulk build if all its shards are there and fit; or aborts it.
pub fn run(options: &Options) -> Result<(), Failure> {
    if options.abort {
        let removed = abort_build(&options.root)?;
        return options
            .output
            .print(&json!({ "removed_shards": removed }), || format!("{removed} shards removed\n"));
    }
    let directories = (!options.directory.is_empty()).then(|| options.directory.clone());
    let commit = CommitOptions { directories, checksums: options.checksums, ..CommitOptions::default() };
    let build = commit_build(&options.root, &commit)?;
    options.output.print(&build, || {
        let root = options.root.display();
        format!("{root}: job {:?}, {} shards, {} records\n", build.job, build.shards, build.items)
    })
}
