//! `--format`.

use std::path::Path;

use alluvium_transfer::Format;
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// The file's format.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct FormatOption {
    /// Format of the file; by default that of its name's extension (.jsonl, .csv, .bin), otherwise jsonl
    #[arg(long, value_parser = parser())]
    format: Option<Format>,
}

fn parser() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| name.parse::<Format>())
}

impl FormatOption {
    /// The format of the file at `path`, or of a standard stream.
    pub fn of(self, path: Option<&Path>) -> Format {
        self.format.or_else(|| Format::of_path(path?)).unwrap_or_default()
    }
}
