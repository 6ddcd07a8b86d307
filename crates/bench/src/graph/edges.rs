//! Edges as numbers: vertices are numbered in the order in which they are first named.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use crate::error::BenchError;

/// Maximum bytes of a line of an edge list.
const LINE_BYTES_MAX: u64 = 1 << 16;

/// The edges of a graph, in the order in which they were added.
#[derive(Debug, Default)]
pub struct Edges {
    numbers: HashMap<String, u64>,
    edges: Vec<(u64, u64)>,
}

impl Edges {
    /// Adds an edge between two named vertices.
    pub fn add(&mut self, source: &str, destination: &str) {
        let edge = (self.number(source), self.number(destination));
        self.edges.push(edge);
    }

    fn number(&mut self, name: &str) -> u64 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.numbers.len() as u64;
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// Number of vertices that have edges.
    pub fn vertices(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// Sources and destinations.
    pub fn as_slice(&self) -> &[(u64, u64)] {
        &self.edges
    }

    /// Reads an edge list: lines `source destination [anything]`, separated by blanks, tabs or commas. Skips empty
    /// lines, and lines that start with `#` or `%`.
    ///
    /// # Errors
    /// [`BenchError::Input`] with the line that is invalid.
    pub fn read(path: &Path) -> Result<Self, BenchError> {
        let wrong =
            |line, reason: &str| BenchError::Input { path: path.to_owned(), line, reason: reason.to_owned() };
        let mut input =
            BufReader::new(File::open(path).map_err(|error| wrong(0, &format!("can't open it: {error}")))?);
        let (mut edges, mut bytes) = (Self::default(), Vec::new());
        for line in 1.. {
            bytes.clear();
            let read = (&mut input).take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut bytes);
            if read.map_err(|error| wrong(line, &format!("can't read it: {error}")))? == 0 {
                break;
            }
            if bytes.len() as u64 > LINE_BYTES_MAX {
                return Err(wrong(line, "the line is longer than 64 KiB; an edge list is expected"));
            }
            let text = std::str::from_utf8(&bytes)
                .map_err(|_| wrong(line, "no UTF-8 text; an edge list is expected, uncompressed"))?;
            let text = text.trim();
            if text.is_empty() || text.starts_with(['#', '%']) {
                continue;
            }
            let mut names = text.split([' ', '\t', ',']).filter(|name| !name.is_empty());
            match (names.next(), names.next()) {
                (Some(source), Some(destination)) => edges.add(source, destination),
                _ => return Err(wrong(line, "expected `source destination`, found one name only")),
            }
        }
        if edges.edges.is_empty() { Err(wrong(0, "it has no edges")) } else { Ok(edges) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Edges, BenchError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        Edges::read(file.path())
    }

    fn line_of(bytes: &[u8]) -> u64 {
        match read(bytes) {
            Err(BenchError::Input { line, .. }) => line,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn blanks_tabs_and_commas_part_names() {
        let edges = read(b"# a comment\n1 2\n\n2\t3\t0.5\r\n 1,3,weight\n1, 1").unwrap();
        assert_eq!(edges.as_slice(), [(0, 1), (1, 2), (0, 2), (0, 0)]);
        assert_eq!(edges.vertices(), 3);
    }

    #[test]
    fn what_is_no_edge_is_refused_with_its_line() {
        assert_eq!(line_of(b"1 2\n% none\n3\n"), 3);
        assert_eq!(line_of(b"1 2\n,,3,\n"), 2);
        assert_eq!(line_of(b"1 2\n\xff\xfe 3\n"), 2);
        assert_eq!(line_of(&[b'1'; 100_000]), 1);
        assert_eq!(line_of(b"# nothing\n\n"), 0);
        let error = Edges::read(Path::new("/none/there")).unwrap_err();
        assert!(error.to_string().starts_with("/none/there: can't open it"), "{error}");
    }
}
