//! `cargo xtask tidy`: the repository tests itself.
//!
//! Each rule is a function from files to findings; this file collects the files and prints the findings. The rules look
//! only at files that git tracks or would track.

mod circles;
mod documents;
mod manifests;
mod ratchet;
mod source;
mod synchronization;
mod words;

use std::fs;
use std::path::PathBuf;

use crate::shell;

/// How to run.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Record the present lengths of long files in the ratchet instead of failing on them
    #[arg(long)]
    pub bless: bool,
    /// Print each crate's files, lines and largest circle of imports, instead of checking
    #[arg(long)]
    pub rooms: bool,
}

/// A file of the repository.
pub struct TidyFile {
    /// Path from the root, with `/`.
    pub path: String,
    /// Content; empty text for binary files.
    pub text: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Whether it is not UTF-8 text.
    pub is_binary: bool,
}

impl TidyFile {
    fn extension(&self) -> &str {
        self.path.rsplit_once('.').map_or("", |(_, extension)| extension)
    }
}

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// Path of the file from the root.
    pub path: String,
    /// Line, counted from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong and what to do.
    pub message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

/// Checks everything; prints the findings and fails with their number.
pub fn run(options: &Options) -> Result<(), String> {
    let files = tracked_files()?;
    if options.bless {
        return ratchet::bless(&files);
    }
    if options.rooms {
        return print_rooms(&files);
    }
    let mut findings = Vec::new();
    findings.extend(ratchet::check(&files));
    for file in &files {
        findings.extend(blob(file));
        findings.extend(source::check(file));
        findings.extend(synchronization::check(file));
        findings.extend(words::check(file));
    }
    findings.extend(source::dead_files(&files));
    findings.extend(circles::check(&files));
    findings.extend(manifests::check(&files));
    findings.extend(documents::check(&files));
    for Finding { path, line, message } in &findings {
        println!("{path}:{line}: {message}");
    }
    match findings.len() {
        0 => {
            println!("tidy: {} files in order", files.len());
            Ok(())
        }
        count => Err(format!("{count} findings")),
    }
}

fn print_rooms(files: &[TidyFile]) -> Result<(), String> {
    let rooms = circles::rooms(files).map_err(|finding| format!("{}: {}", finding.path, finding.message))?;
    println!("{:10} {:>6} {:>7} {:>15}", "crate", "files", "lines", "largest circle");
    for room in &rooms {
        println!("{:10} {:>6} {:>7} {:>15}", room.name, room.files, room.lines, room.circle.len());
    }
    let (files, lines) = rooms.iter().fold((0, 0), |sum, room| (sum.0 + room.files, sum.1 + room.lines));
    println!("{:10} {files:>6} {lines:>7}", "all");
    Ok(())
}

/// Maximum size of a file, so that the repository's history stays small.
const BLOB_BYTES_MAX: u64 = 512 << 10;

fn blob(file: &TidyFile) -> Vec<Finding> {
    if file.size_bytes > BLOB_BYTES_MAX {
        let message = format!("{} bytes: more than {BLOB_BYTES_MAX}; generate it instead", file.size_bytes);
        return vec![Finding::new(&file.path, 0, message)];
    }
    let is_picture = file.path.starts_with("docs/") && file.path.ends_with(".png");
    if file.is_binary && !is_picture && !file.path.contains("/fixtures/") {
        let message = "a binary file that is neither in a fixtures folder nor a picture of the documentation";
        return vec![Finding::new(&file.path, 0, message)];
    }
    Vec::new()
}

fn tracked_files() -> Result<Vec<TidyFile>, String> {
    let listing = shell::output("git ls-files --cached --others --exclude-standard")
        .ok_or("cannot list files: `git ls-files` failed")?;
    let mut files = Vec::new();
    for path in listing.lines() {
        let absolute: PathBuf = shell::root().join(path);
        if !absolute.is_file() {
            continue; // deleted but not yet committed, or a submodule
        }
        let bytes = fs::read(&absolute).map_err(|error| format!("cannot read {path}: {error}"))?;
        let size_bytes = bytes.len() as u64;
        let text = String::from_utf8(bytes);
        files.push(TidyFile {
            path: path.to_owned(),
            size_bytes,
            is_binary: text.is_err(),
            text: text.unwrap_or_default(),
        });
    }
    Ok(files)
}

#[cfg(test)]
fn file(path: &str, text: &str) -> TidyFile {
    TidyFile { path: path.to_owned(), text: text.to_owned(), size_bytes: text.len() as u64, is_binary: false }
}
