//! `alluvium completions`.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::Arguments;
use crate::failure::Failure;

/// Options of `completions`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The shell
    shell: Shell,
}

/// Prints the script that makes the shell complete this command.
pub fn run(options: &Options) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Arguments::command(), "alluvium", &mut script);
    let mut out = io::stdout().lock();
    out.write_all(&script)?;
    out.flush()?;
    Ok(())
}
