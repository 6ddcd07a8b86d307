//! What a server writes about itself to standard error.

use std::fmt::Display;
use std::io;

use clap::ValueEnum;
use serde::Deserialize;
use tracing::Level;

/// Form of the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Time, level, message, and fields as `name=value`
    #[default]
    Text,
    /// One JSON object per line
    Json,
    /// No lines
    Off,
}

/// Which lines are written: these and those of more weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Clients are not served as they should be
    Error,
    /// Clients were refused or closed, or will be
    Warn,
    /// What operators do, and what begins and ends
    #[default]
    Info,
    /// Clients that come and go
    Debug,
}

/// Lets the process write lines; to be called once.
pub fn start(format: Format, weight: Weight) {
    let level = match weight {
        Weight::Error => Level::ERROR,
        Weight::Warn => Level::WARN,
        Weight::Info => Level::INFO,
        Weight::Debug => Level::DEBUG,
    };
    // Nobody reads of lines that cannot be written, and they are no reason to serve less.
    let lines = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .with_ansi(false)
        .log_internal_errors(false)
        .with_writer(io::stderr);
    match format {
        Format::Text => lines.init(),
        Format::Json => lines.json().flatten_event(true).init(),
        Format::Off => {}
    }
}

/// As a field that is left out if there is nothing.
pub fn shown<T: Display>(value: Option<T>) -> Option<tracing::field::DisplayValue<T>> {
    value.map(tracing::field::display)
}
