//! `alluvium adopt`.

use std::path::PathBuf;
use std::time::Instant;

use alluvium::{AdoptOptions, adopt};
use alluvium_base::units::format_bytes;

use crate::failure::Failure;
use crate::output::JsonOption;
use crate::progress;

/// Options of `adopt`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Directory of a committed build
    #[arg(value_name = "BUILD")]
    root: PathBuf,
    /// Directory of the database, which must be empty or missing
    #[arg(value_name = "DIR")]
    target: PathBuf,
    /// Don't read and check the tables: with links it takes milliseconds, but may adopt damage
    #[arg(long)]
    no_verify: bool,
    #[command(flatten)]
    output: JsonOption,
}

/// Makes the shards of a build one database, by links if both directories are on one file system.
pub fn run(options: &Options) -> Result<(), Failure> {
    let start = Instant::now();
    let spinner = progress::spinner("adopting tables");
    let adopt_options = AdoptOptions { verify: !options.no_verify, ..AdoptOptions::default() };
    let outcome = adopt(&options.root, &options.target, &adopt_options);
    spinner.finish_and_clear();
    let adopted = outcome?;
    let seconds = start.elapsed().as_secs_f64();
    options.output.print(&adopted, || {
        let (linked, copied) = (format_bytes(adopted.linked_bytes), format_bytes(adopted.copied_bytes));
        format!(
            "{} shards: {} files linked ({linked}), {} copied ({copied}), in {seconds:.2} s\n",
            adopted.shards, adopted.linked_files, adopted.copied_files
        )
    })
}
