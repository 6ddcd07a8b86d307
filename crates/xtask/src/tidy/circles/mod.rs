//! The rule that files of a crate do not import each other in large circles: such files can only be understood, and
//! changed, all together.
//!
//! An arrow runs from a file to the file that defines what it names, whether by `use` or by a path in its code.
//! Re-exports are followed and are no arrows themselves; tests are not looked at. What a macro contains is not read.

mod components;
mod crate_files;
mod names;

use std::collections::{BTreeMap, BTreeSet};

use components::largest_component;
use crate_files::CrateFiles;

use super::{Finding, TidyFile};

/// Maximum number of files that import each other in a circle.
const CIRCLE_FILES_MAX: usize = 15;

/// A crate in figures.
#[derive(Debug, PartialEq, Eq)]
pub struct Room {
    /// The crate's directory in `crates/`.
    pub name: String,
    /// Number of source files without tests.
    pub files: usize,
    /// Number of their lines.
    pub lines: usize,
    /// The paths of the files of the largest circle; empty if there is none.
    pub circle: Vec<String>,
}

/// The crates, by name.
///
/// # Errors
/// If a file is no Rust.
pub fn rooms(files: &[TidyFile]) -> Result<Vec<Room>, Finding> {
    let mut crates: BTreeMap<&str, Vec<&TidyFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| crate_files::is_product(&file.path)) {
        let name = file.path.split('/').nth(1).expect("a product file is in crates/");
        crates.entry(name).or_default().push(file);
    }
    crates.into_iter().map(|(name, files)| room(name, &files)).collect()
}

/// Findings in all crates.
pub fn check(files: &[TidyFile]) -> Vec<Finding> {
    match rooms(files) {
        Ok(rooms) => rooms.iter().filter_map(finding).collect(),
        Err(finding) => vec![finding],
    }
}

fn finding(room: &Room) -> Option<Finding> {
    let count = room.circle.len();
    (count > CIRCLE_FILES_MAX).then(|| {
        let files = room.circle.join(" ");
        let message = format!("{count} files import each other, more than {CIRCLE_FILES_MAX}: {files}");
        Finding::new(&format!("crates/{}", room.name), 0, message)
    })
}

fn room(name: &str, files: &[&TidyFile]) -> Result<Room, Finding> {
    let lines = files.iter().map(|file| file.text.lines().count()).sum();
    let parsed = CrateFiles::parse(files)?;
    let arrows: Vec<BTreeSet<usize>> = (0..files.len()).map(|file| parsed.arrows_of(file)).collect();
    let circle = largest_component(&arrows).into_iter().map(|file| files[file].path.clone()).collect();
    Ok(Room { name: name.to_owned(), files: files.len(), lines, circle })
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn circle(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> =
            files.iter().map(|(path, text)| file(&format!("crates/a/src/{path}"), text)).collect();
        let rooms = rooms(&files).unwrap();
        rooms[0].circle.iter().map(|path| path.trim_start_matches("crates/a/src/").to_owned()).collect()
    }

    #[test]
    fn re_exports_are_followed_and_are_no_arrows() {
        let lib = "mod b; mod c; pub use b::B;";
        assert_eq!(circle(&[("lib.rs", lib), ("b.rs", "use crate::c::C;"), ("c.rs", "")]), [""; 0]);
        let (b, c) = ("use crate::c::C; pub struct B;", "use crate::B; pub struct C;");
        assert_eq!(circle(&[("lib.rs", lib), ("b.rs", b), ("c.rs", c)]), ["b.rs", "c.rs"]);
        let glob = "mod b; mod c; pub use b::*;";
        assert_eq!(circle(&[("lib.rs", glob), ("b.rs", b), ("c.rs", c)]), ["b.rs", "c.rs"]);
    }

    #[test]
    fn paths_in_code_are_arrows_and_tests_are_not() {
        let (b, c) = ("use super::c; fn b() { c::f() }", "pub fn f() { crate::b::b() }");
        assert_eq!(circle(&[("lib.rs", "mod b; mod c;"), ("b.rs", b), ("c.rs", c)]), ["b.rs", "c.rs"]);
        let c = "#[cfg(test)] mod tests { use crate::b::b; }";
        assert_eq!(circle(&[("lib.rs", "mod b; mod c;"), ("b.rs", b), ("c.rs", c)]), [""; 0]);
        let nested =
            [("lib.rs", "mod b;"), ("b/mod.rs", "mod c; pub struct B;"), ("b/c.rs", "use super::B;")];
        assert_eq!(circle(&nested), [""; 0]);
    }

    #[test]
    fn a_large_circle_is_a_finding() {
        let count = CIRCLE_FILES_MAX + 1;
        let next = |number: usize| format!("use crate::m{}::f; pub fn f() {{}}", (number + 1) % count);
        let mut files: Vec<_> =
            (0..count).map(|number| file(&format!("crates/a/src/m{number}.rs"), &next(number))).collect();
        let lib: String = (0..count).map(|number| format!("mod m{number};")).collect();
        files.push(file("crates/a/src/lib.rs", &lib));
        assert_eq!(check(&files).len(), 1);
        files[0] = file("crates/a/src/m0.rs", "pub fn f() {}");
        assert_eq!(check(&files), []);
    }
}
