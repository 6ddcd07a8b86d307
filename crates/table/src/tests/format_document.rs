//! Checks the worked examples of tables in `docs/format.md`.

use std::fmt::Write as _;

use alluvium_base::{HashRange, KeyspaceId};

use super::memory_storage::MemoryStorage;
use super::{HASHER, NAME, OwnedItem, table, write_hash_section, write_sorted_section};
use super::{buckets, semi_sorted};
use crate::{SectionSpec, SortedIndex};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format.md");

/// The file of the example: keyspace 3 has two fruit in hash layout, keyspace 4 the same two in sorted layout.
fn example() -> Vec<u8> {
    let items = [
        OwnedItem::value("apple", "red"),
        OwnedItem { flags: 5, expires_at_ms: Some(1_800_000_000_000), ..OwnedItem::value("pear", "green") },
    ];
    let spec =
        |keyspace| SectionSpec { keyspace, hasher: HASHER, range: HashRange::ALL, level: 0, plan_number: 0 };
    let storage = MemoryStorage::default();
    table(&storage, |writer| {
        write_hash_section(writer, spec(KeyspaceId(3)), &items, 15);
        write_sorted_section(writer, spec(KeyspaceId(4)), &items, SortedIndex::FENCES);
    });
    storage.file(NAME).bytes()
}

/// What `hexdump -C` prints: repeated lines are one `*`.
fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut previous: Option<&[u8]> = None;
    let mut is_starred = false;
    for (number, line) in bytes.chunks(16).enumerate() {
        if previous == Some(line) {
            if !is_starred {
                text.push_str("*\n");
            }
            is_starred = true;
            continue;
        }
        (previous, is_starred) = (Some(line), false);
        let (left, right) = line.split_at(8);
        let hex = |half: &[u8]| half.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
        let ascii: String = line
            .iter()
            .map(|&byte| if (0x20..0x7f).contains(&byte) { char::from(byte) } else { '.' })
            .collect();
        writeln!(text, "{:08x}  {}  {}  |{ascii}|", number * 16, hex(left), hex(right)).unwrap();
    }
    writeln!(text, "{:08x}", bytes.len()).unwrap();
    text
}

/// The file of the second example: keyspace 3 has the fruit in buckets. Keyspace 4 has them semi-sorted by the part
/// before `/`, with the names of the prefixes, which makes the entries of both long ones.
fn example_of_long_entries() -> Vec<u8> {
    let items = [OwnedItem::value("apple/red", "1"), OwnedItem::value("pear/green", "2")];
    let storage = MemoryStorage::default();
    table(&storage, |writer| {
        buckets::write_section(writer, &items);
        semi_sorted::write_section(writer, KeyspaceId(4), &items);
    });
    storage.file(NAME).bytes()
}

/// Compares with the example after this heading.
fn check(heading: &str, bytes: &[u8]) {
    let document = std::fs::read_to_string(DOCUMENT).expect("docs/format.md");
    let (_, behind) = document.split_once(heading).expect("the heading");
    let (_, example_on) = behind.split_once("```hexdump\n").expect("the example");
    let (example_text, _) = example_on.split_once("```").expect("the end of the example");
    let expected = dump(bytes);
    assert!(example_text == expected, "the example in docs/format.md should read:\n{expected}");
}

#[test]
fn the_example_is_what_the_writer_writes() {
    check("\n### Example\n", &example());
}

#[test]
fn the_example_of_buckets_and_long_entries_is_what_the_writer_writes() {
    check("\n### Example of buckets and long entries\n", &example_of_long_entries());
}
