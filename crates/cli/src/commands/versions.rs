//! `alluvium versions`.

use std::path::PathBuf;

use alluvium::{Version, VersionState, check_build, versions};
use serde_json::json;

use crate::failure::Failure;
use crate::output::JsonOption;

/// Options of `versions`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Directory of versions: 0001, 0002, …, each a committed build or a database
    #[arg(value_name = "ROOT")]
    root: PathBuf,
    /// Check the files of builds by their lengths
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    output: JsonOption,
}

/// Lists the versions from which `serve --versions` serves one. Which one that is, its INFO says.
pub fn run(options: &Options) -> Result<(), Failure> {
    for Version { number, path, state } in versions(&options.root)? {
        let (kind, mut detail) = match &state {
            VersionState::Build(build) => {
                ("build", format!("job {:?}, {} shards, {} records", build.job, build.shards, build.items))
            }
            VersionState::Database => ("database", String::new()),
            VersionState::Damaged { reason } => ("damaged", reason.clone()),
            _ => ("incomplete", String::new()),
        };
        let mut fits = state_fits(&state);
        if options.check
            && kind == "build"
            && let Err(error) = check_build(&path, false)
        {
            (detail, fits) = (error.to_string(), false);
        }
        let object = json!({ "number": number, "kind": kind, "detail": detail, "fits": fits });
        options.output.print(&object, || format!("{number:04}  {kind}  {detail}\n"))?;
    }
    Ok(())
}

fn state_fits(state: &VersionState) -> bool {
    matches!(state, VersionState::Build(_) | VersionState::Database)
}
