//! The committed header is the one that the sources make. `ALLUVIUM_BLESS=1 cargo test -p alluvium-capi --test header`
//! writes it anew.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of `src` with exported functions, in the order of the header.
const SECTIONS: [&str; 16] = [
    "version",
    "error",
    "memory",
    "options",
    "database",
    "keyspace",
    "item",
    "many",
    "batch",
    "iterator",
    "snapshot",
    "ingest",
    "report",
    "cache_options",
    "cache",
    "cache_update",
];

const BEGINNING: &str = "
#ifndef ALLUVIUM_H
#define ALLUVIUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif
";

const END: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

fn package() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A comment of C with a heading, from a module comment of Rust or a text.
fn comment<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut out = String::from("/*\n");
    for line in lines {
        match line.strip_prefix("# ") {
            Some(heading) => writeln!(out, " * {heading}\n * {}", "=".repeat(heading.len())).unwrap(),
            None if line.is_empty() => out.push_str(" *\n"),
            None => writeln!(out, " * {line}").unwrap(),
        }
    }
    out.push_str(" */\n");
    out
}

fn section(path: &Path) -> String {
    let source = fs::read_to_string(path).unwrap();
    let introduction = source.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim_start);
    let config = cbindgen::Config::from_file(package().join("cbindgen.toml")).unwrap();
    let mut declarations = Vec::new();
    cbindgen::Builder::new().with_config(config).with_src(path).generate().unwrap().write(&mut declarations);
    format!("\n{}\n{}\n", comment(introduction), String::from_utf8(declarations).unwrap().trim())
}

fn header() -> String {
    let contract = fs::read_to_string(package().join("include/contract.txt")).unwrap();
    let mut header = comment(contract.lines());
    header.push_str(BEGINNING);
    for name in SECTIONS {
        header.push_str(&section(&package().join(format!("src/{name}.rs"))));
    }
    header.push_str(END);
    header
}

#[test]
fn the_header_is_that_of_the_sources() {
    let path = package().join("include/alluvium.h");
    let header = header();
    if std::env::var_os("ALLUVIUM_BLESS").is_some() {
        fs::write(&path, &header).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let differing = header.lines().zip(committed.lines()).position(|(made, has)| made != has);
    assert!(
        header == committed,
        "include/alluvium.h differs from the sources at line {}: make it anew with ALLUVIUM_BLESS=1",
        differing.unwrap_or(committed.lines().count()) + 1
    );
}

/// Each file that exports functions is a section, and each exported function is declared once.
#[test]
fn every_exported_function_is_declared() {
    let header = header();
    // A declaration begins its line.
    let declarations: Vec<&str> = header.lines().filter(|line| !line.starts_with(' ')).collect();
    let mut exported = 0;
    for entry in fs::read_dir(package().join("src")).unwrap() {
        let path = entry.unwrap().path();
        let source = fs::read_to_string(&path).unwrap();
        let mut lines = source.lines();
        while let Some(line) = lines.next() {
            if line != "#[unsafe(no_mangle)]" {
                continue;
            }
            let name = lines.next().and_then(|line| line.split("fn ").nth(1)).unwrap();
            let name = name.split('(').next().unwrap();
            let call = format!("{name}(");
            let declared = declarations.iter().filter(|line| line.contains(&call)).count();
            assert_eq!(declared, 1, "{name} of {} in the header", path.display());
            exported += 1;
        }
    }
    assert!(exported > 90, "{exported} functions were found");
}
