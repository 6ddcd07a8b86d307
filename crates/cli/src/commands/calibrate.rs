//! `alluvium calibrate`.

use std::path::PathBuf;
use std::time::Duration;

use alluvium::device::{self, DeviceFigures};
use alluvium_base::units::format_bytes;

use crate::failure::Failure;
use crate::output::JsonOption;

/// Maximum seconds that measuring may take.
const SECONDS_MAX: f64 = 20.0;

/// Options of `calibrate`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Directory on the device, preferably that of a database; created if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// How long to measure, at most 20 seconds
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    #[command(flatten)]
    output: JsonOption,
}

/// Measures the device, stores the results in the directory and prints them.
pub fn run(options: &Options) -> Result<(), Failure> {
    if !(options.seconds > 0.0 && options.seconds <= SECONDS_MAX) {
        return Err(Failure::Usage(format!("--seconds must be above 0 and at most {SECONDS_MAX}")));
    }
    let figures = device::calibrate_directory(&options.directory, Duration::from_secs_f64(options.seconds))?;
    options.output.print(&figures, || table(&figures))
}

fn table(figures: &DeviceFigures) -> String {
    let reads = figures.reads.iter().map(|rate| {
        let name = format!("4 KiB random reads, {} in flight", rate.in_flight);
        format!("{name:<36} {:>10.0}/s\n", rate.reads_per_s)
    });
    let rows = [
        ("sequential write", format!("{}/s", format_bytes(figures.write_bytes_per_s as u64))),
        ("sequential read", format!("{}/s", format_bytes(figures.read_bytes_per_s as u64))),
        ("synced 4 KiB writes", format!("{:.0}/s", figures.syncs_per_s)),
    ];
    let rest = rows.iter().map(|(name, rate)| format!("{name:<36} {rate:>12}\n"));
    reads.chain(rest).collect()
}
