//! The files of a crate as its tree of modules, in which paths are resolved.

use std::collections::{BTreeMap, BTreeSet};

use super::names::{Names, Path};
use super::{Finding, TidyFile};

/// Maximum number of re-exports that are followed for one name.
const HOPS_MAX: usize = 16;

/// The files of a crate.
#[derive(Debug)]
pub struct CrateFiles {
    names: Vec<Names>,
    /// The module of each file, as a path from the crate's root.
    modules: Vec<Path>,
    /// The file of each module.
    files: BTreeMap<Path, usize>,
}

/// Whether a file belongs to a crate's product: no test, no build script.
pub fn is_product(path: &str) -> bool {
    let mut parts = path.split('/');
    let is_in_crate = parts.next() == Some("crates") && parts.nth(1) == Some("src") && path.ends_with(".rs");
    is_in_crate && !path.contains("/tests/") && !path.ends_with("tests.rs")
}

impl CrateFiles {
    /// Reads the files of a crate.
    ///
    /// # Errors
    /// If one is no Rust.
    pub fn parse(files: &[&TidyFile]) -> Result<Self, Finding> {
        let names = files
            .iter()
            .map(|file| Names::parse(&file.text).map_err(|message| Finding::new(&file.path, 0, message)));
        let names = names.collect::<Result<Vec<_>, _>>()?;
        let modules: Vec<Path> = files.iter().map(|file| module(&file.path)).collect();
        let files = modules.iter().cloned().zip(0..).collect();
        Ok(Self { names, modules, files })
    }

    /// The files that define what a file names, without itself.
    pub fn arrows_of(&self, file: usize) -> BTreeSet<usize> {
        let names = &self.names[file];
        let paths = names.imports.values().chain(&names.paths).chain(&names.globs);
        let targets = paths.filter_map(|path| self.resolve(file, path, HOPS_MAX));
        // A module that is named as a whole counts where something in it is named.
        targets.filter_map(|target| target.is_item.then_some(target.file)).filter(|to| *to != file).collect()
    }

    /// The file that defines what `path` names in `file`; `None` if another crate does.
    fn resolve(&self, file: usize, path: &[String], hops: usize) -> Option<Target> {
        let hops = hops.checked_sub(1)?;
        let (first, mut rest) = path.split_first()?;
        let mut module = self.modules[file].clone();
        match first.as_str() {
            "crate" => module.clear(),
            "self" => {}
            "super" => {
                module.pop();
            }
            name => match self.child(&module, name) {
                Some(child) => module = self.modules[child].clone(),
                None => {
                    let names = &self.names[file];
                    let import = names.imports.get(name).or_else(|| names.re_exports.get(name))?;
                    if import.first() == Some(first) {
                        return None;
                    }
                    let path: Path = import.iter().chain(rest).cloned().collect();
                    return self.resolve(file, &path, hops);
                }
            },
        }
        while rest.first().is_some_and(|name| name == "super") {
            module.pop();
            rest = &rest[1..];
        }
        self.resolve_in(&module, rest, hops)
    }

    /// Like [`CrateFiles::resolve`], from a module's own names.
    fn resolve_in(&self, module: &Path, path: &[String], hops: usize) -> Option<Target> {
        let file = *self.files.get(module)?;
        let Some((first, rest)) = path.split_first() else { return Some(Target { file, is_item: false }) };
        if let Some(child) = self.child(module, first) {
            return self.resolve_in(&self.modules[child], rest, hops);
        }
        let names = &self.names[file];
        if names.items.contains(first) {
            return Some(Target { file, is_item: true });
        }
        if let Some(path) = names.re_exports.get(first).or_else(|| names.imports.get(first)) {
            let path: Path = path.iter().chain(rest).cloned().collect();
            return self.resolve(file, &path, hops);
        }
        let by_glob = names.globs.iter().find_map(|glob| {
            let path: Path = glob.iter().chain(path).cloned().collect();
            self.resolve(file, &path, hops.checked_sub(1)?).filter(|target| target.is_item)
        });
        by_glob.or_else(|| names.globs.is_empty().then_some(Target { file, is_item: true }))
    }

    fn child(&self, module: &Path, name: &str) -> Option<usize> {
        let path: Path = module.iter().cloned().chain([name.to_owned()]).collect();
        self.files.get(&path).copied()
    }
}

/// What a path leads to.
#[derive(Debug)]
struct Target {
    file: usize,
    /// Whether the path names something in the file, and not the module as a whole.
    is_item: bool,
}

/// The module of the file at this path, as a path from the crate's root.
fn module(path: &str) -> Path {
    let inside = path.splitn(4, '/').nth(3).expect("a product file is in crates/*/src");
    let mut module: Path = inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        module.pop();
    }
    module
}
