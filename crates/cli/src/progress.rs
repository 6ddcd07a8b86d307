//! Progress on standard error, if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const REDRAW: Duration = Duration::from_millis(200);

/// Shows that work of unknown length is running.
pub fn spinner(message: &'static str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(message);
    spinner.enable_steady_tick(REDRAW);
    spinner
}

/// A bar over `len` items. The number is an estimate, so the bar may end early or late.
pub fn items(len: u64) -> ProgressBar {
    bar(len, "{wide_bar} {human_pos} of about {human_len} items, {eta} left")
}

/// A bar over `len` bytes.
pub fn bytes(len: u64) -> ProgressBar {
    bar(len, "{wide_bar} {binary_bytes} of {binary_total_bytes}, {eta} left")
}

fn bar(len: u64, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(len).with_style(style)
}
