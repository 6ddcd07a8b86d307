//! A graph that everyone who builds Rust programs already has: Cargo's copy of the registry's index.
//!
//! Cargo stores the registry's records of every crate that any of its resolutions looked at, all versions, in
//! `registry/index/*/.cache`. A file consists of a header, followed by the versions, each with its JSON record; a zero
//! byte ends each. Edges lead from a crate to its versions, from a version to the crates that it depends on and to its
//! features, and from a feature to the features and crates that it enables. A few hundred crates have more than 10⁵
//! edges.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::edges::Edges;
use crate::error::BenchError;

/// The parts of a version's record that are needed.
#[derive(Deserialize)]
struct Record {
    name: String,
    vers: String,
    #[serde(default)]
    deps: Vec<Dependency>,
    #[serde(default)]
    features: BTreeMap<String, Vec<String>>,
    /// Features of newer syntax.
    #[serde(default)]
    features2: Option<BTreeMap<String, Vec<String>>>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// The crate's own name, if it is renamed here.
    package: Option<String>,
}

impl Record {
    /// The crate that is called `name` here: a renamed dependency, or the crate with that name.
    fn package_of<'a>(&'a self, name: &'a str) -> &'a str {
        let renamed = self.deps.iter().find(|dependency| dependency.name == name);
        renamed.map_or(name, Dependency::package_name)
    }
}

impl Dependency {
    fn package_name(&self) -> &str {
        self.package.as_ref().unwrap_or(&self.name)
    }
}

/// Cargo's home directory: `CARGO_HOME`, or `.cargo` in the user's home.
pub fn cargo_home() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    set("CARGO_HOME").or_else(|| Some(set("HOME")?.join(".cargo")))
}

/// The edges of all index files below `home`, in the order of their paths.
///
/// # Errors
/// [`BenchError::Input`] for an invalid record, or if there are no edges.
pub fn edges_below(home: &Path) -> Result<Edges, BenchError> {
    let index = home.join("registry/index");
    let mut files = Vec::new();
    for registry in paths_in(&index) {
        files_below(&registry.join(".cache"), &mut files);
    }
    let mut edges = Edges::default();
    for path in files {
        add_file(&path, &std::fs::read(&path)?, &mut edges)?;
    }
    if edges.as_slice().is_empty() {
        let reason = "no crates are known here; resolve any project with Cargo first".to_owned();
        return Err(BenchError::Input { path: index, line: 0, reason });
    }
    Ok(edges)
}

/// The paths in a directory, sorted by name; none if it cannot be listed.
fn paths_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn files_below(directory: &Path, files: &mut Vec<PathBuf>) {
    for path in paths_in(directory) {
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => files_below(&path, files),
            Ok(metadata) if metadata.is_file() => files.push(path),
            _ => {}
        }
    }
}

fn add_file(path: &Path, bytes: &[u8], edges: &mut Edges) -> Result<(), BenchError> {
    for (at, json) in bytes.split(|byte| *byte == 0).enumerate().filter(|(_, part)| part.starts_with(b"{")) {
        let record: Record = serde_json::from_slice(json).map_err(|error| BenchError::Input {
            path: path.to_owned(),
            line: 0,
            reason: format!("part {at} is not the record of a version: {error}"),
        })?;
        add_record(&record, edges);
    }
    Ok(())
}

fn add_record(record: &Record, edges: &mut Edges) {
    let version = format!("{}@{}", record.name, record.vers);
    edges.add(&record.name, &version);
    for dependency in &record.deps {
        edges.add(&version, dependency.package_name());
    }
    for (feature, turned_on) in record.features.iter().chain(record.features2.iter().flatten()) {
        let source = format!("{version}/{feature}");
        edges.add(&version, &source);
        for name in turned_on {
            match name.strip_prefix("dep:").or_else(|| name.split_once('/').map(|(of, _)| of)) {
                Some(dependency) => edges.add(&source, record.package_of(dependency.trim_end_matches('?'))),
                None => edges.add(&source, &format!("{version}/{name}")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home_with(bytes: &[u8]) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("registry/index/some/.cache/a/b");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("ab"), bytes).unwrap();
        home
    }

    #[test]
    fn versions_dependencies_and_features_are_edges() {
        let json = r#"{"name":"ab","vers":"1.0.0","deps":[{"name":"x"},{"name":"y","package":"z"}],
            "features":{"std":["x/std","own","y?/std"],"own":["dep:x"]}}"#;
        let home = home_with(format!("\u{3}\u{2}\0\0\0etag\01.0.0\0{json}\0").as_bytes());
        let edges = edges_below(home.path()).unwrap();
        // To the version, to two crates, to the features own and std, and to what these enable: one, and three.
        assert_eq!(edges.as_slice().len(), 1 + 2 + 2 + 1 + 3);
        assert_eq!(edges.vertices(), 6, "ab, ab@1.0.0, x, z, own and std; y is but a name of z");
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let home = home_with(b"\0{\"name\":\"ab\"}\0");
        let error = edges_below(home.path()).unwrap_err();
        assert!(matches!(&error, BenchError::Input { reason, .. } if reason.contains("vers")), "{error}");
        let nothing = tempfile::tempdir().unwrap();
        assert!(matches!(edges_below(nothing.path()), Err(BenchError::Input { .. })));
    }
}
