//! `cargo xtask memory`: the memory of a database under a memory limit, compared with what the documentation promises.
//!
//! Two processes run for each limit: one writes and reads for some time, the other opens the resulting database and
//! reads all of it. They are separate because the kernel counts the peak of a process, and an allocator does not return
//! its memory.

mod work;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use alluvium_io::ProcessMemory;

/// Which limits, and how much work under each.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The limits, in mebibytes
    #[arg(long, value_delimiter = ',', default_values_t = [4, 16, 64])]
    pub limits: Vec<u64>,
    /// Number of keyspaces
    #[arg(long, default_value_t = 200)]
    pub keyspaces: usize,
    /// Number of threads that write and read
    #[arg(long, default_value_t = 16)]
    pub threads: usize,
    /// Seconds of work under each limit
    #[arg(long, default_value_t = 20)]
    pub seconds: u64,
    /// Directory for the databases; a temporary one by default
    #[arg(long)]
    pub directory: Option<std::path::PathBuf>,
    /// Print the database's own account of its memory, by kind, at the peak
    #[arg(long)]
    pub kinds: bool,
    /// The part that this process runs; used by the program itself
    #[arg(long, hide = true)]
    pub part: Option<String>,
}

/// Runs all limits; fails if one was exceeded by more than the constant.
pub fn run(options: &Options) -> Result<(), String> {
    if let Some(part) = &options.part {
        return run_part(options, part);
    }
    let root = match &options.directory {
        Some(directory) => directory.clone(),
        None => std::env::temp_dir().join(format!("alluvium-memory-{}", std::process::id())),
    };
    println!(
        "{:>9} {:>9} {:>12} {:>12} {:>12} {:>12} {:>9} {:>9}",
        "limit", "phase", "resident", "allowed", "counted", "operations", "refused", "opened in"
    );
    let mut exceeded = 0;
    for &limit in &options.limits {
        let directory = root.join(format!("limit-{limit}"));
        // An earlier run that was interrupted may have left it.
        let _ = std::fs::remove_dir_all(&directory);
        for part in ["work", "reopen"] {
            let status = Command::new(std::env::current_exe().map_err(|error| error.to_string())?)
                .args(["memory", "--part", part, "--limits", &limit.to_string()])
                .args(["--keyspaces", &options.keyspaces.to_string()])
                .args(["--threads", &options.threads.to_string()])
                .args(["--seconds", &options.seconds.to_string()])
                .args(options.kinds.then_some("--kinds"))
                .arg("--directory")
                .arg(&directory)
                .status()
                .map_err(|error| format!("starting a process for {limit} MiB: {error}"))?;
            exceeded += usize::from(!status.success());
        }
        let _ = std::fs::remove_dir_all(&directory);
    }
    let _ = std::fs::remove_dir(&root);
    match exceeded {
        0 => Ok(()),
        count => Err(format!("{count} of {} processes failed or took more", 2 * options.limits.len())),
    }
}

/// One process: runs its part, and prints its memory.
fn run_part(options: &Options, part: &str) -> Result<(), String> {
    let (Some(&limit), Some(directory)) = (options.limits.first(), &options.directory) else {
        return Err("a part has one limit and a directory".to_owned());
    };
    let limit = limit << 20;
    let seconds = Duration::from_secs(options.seconds);
    let program = ProcessMemory::program_bytes().unwrap_or(0);
    let directory: &Path = directory;
    let outcome = match part {
        "work" => work::work(directory, limit, options.keyspaces, options.threads, seconds),
        _ => work::reopen(directory, limit, options.keyspaces, options.threads),
    };
    let outcome = outcome.map_err(|error| format!("under {limit} bytes: {error}"))?;
    let allowed = limit + alluvium::resident_bytes_beyond_limit(options.threads, options.keyspaces) + program;
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64);
    println!(
        "{:>9} {part:>9} {:>12} {:>12} {:>12} {:>12} {:>9} {:>9}",
        mib(limit),
        mib(outcome.resident),
        mib(allowed),
        mib(outcome.counted.total()),
        outcome.operations,
        outcome.refused,
        format!("{} ms", outcome.opening.as_millis()),
    );
    if options.kinds {
        println!("{:?}", outcome.counted);
        println!("program {}", mib(program));
    }
    if outcome.resident > allowed {
        return Err(format!("{} bytes are resident, {allowed} allowed", outcome.resident));
    }
    Ok(())
}
