//! An error in a file is reported with its place, what was expected and what was found.

use super::read;
use crate::fuzz::sample;
use crate::{Format, KEY_BYTES_MAX, ReadError};

fn message(format: Format, file: &str) -> String {
    let error = read(format, file.as_bytes()).unwrap_err();
    assert!(matches!(error, ReadError::Malformed { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn every_flipped_bit_of_a_binary_file_is_noticed() {
    let sound = sample(Format::Binary);
    for at in 0..sound.len() {
        for bit in 0..8 {
            let mut file = sound.clone();
            file[at] ^= 1 << bit;
            assert!(read(Format::Binary, &file).is_err(), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn every_cut_of_a_binary_file_is_noticed() {
    let sound = sample(Format::Binary);
    for len in 0..sound.len() {
        let error = read(Format::Binary, &sound[..len]).unwrap_err();
        assert!(matches!(error, ReadError::Malformed { .. }), "{len}: {error}");
    }
    let more = [&sound[..], b"x"].concat();
    assert!(read(Format::Binary, &more).unwrap_err().to_string().contains("end frame"));
}

#[test]
fn frames_that_are_lost_doubled_or_moved_are_noticed() {
    let sound = sample(Format::Binary);
    let (header, frames) = sound.split_at(24);
    let (head, rest) = frames.split_at(9 + usize::from(frames[0]));
    let (first, rest) = rest.split_at(9 + usize::from(rest[0]));
    let (second, end) = rest.split_at(9 + usize::from(rest[0]));
    assert!(read(Format::Binary, &[header, head, first, second, end].concat()).is_ok());
    for wrong in [
        [header, head, second, first, end].concat(),
        [header, head, first, first, second, end].concat(),
        [header, head, first, end].concat(),
        [header, first, head, second, end].concat(),
        [header, first, second, end].concat(),
        [header, end].concat(),
    ] {
        assert!(read(Format::Binary, &wrong).unwrap_err().to_string().contains("checksum"));
    }
}

#[test]
fn newer_and_foreign_files_are_told_apart() {
    let mut newer = sample(Format::Binary);
    newer[8] = 3;
    let checksum = alluvium_base::checksum::checksum64(&newer[..16], 0);
    newer[16..24].copy_from_slice(&checksum.to_le_bytes());
    let error = read(Format::Binary, &newer).unwrap_err();
    assert!(matches!(error, ReadError::NewerFormat { found: 3, supported: 2, .. }), "{error}");
    let foreign = message(Format::Binary, "{\"key\":\"a\",\"value\":\"b\",\"flags\":1}\n");
    assert!(foreign.starts_with("items, offset 0: expected the magic ALVMEXP"), "{foreign}");
}

#[test]
fn json_lines_name_line_and_column() {
    let good = "{\"key\":\"a\",\"value\":\"b\"}\n";
    for (line, expected) in [
        ("{\"key\":\"a\"}", "expected value or value_base64, found neither"),
        ("{\"key\":\"a\",\"key_base64\":\"YQ==\",\"value\":\"\"}", "expected key or key_base64, found both"),
        ("{\"key_base64\":\"?\",\"value\":\"\"}", "expected padded base64 in key_base64, found invalid"),
        ("{\"key\":\"a\",\"value\":\"b\",\"ttl\":1}", "found unknown field `ttl`"),
        ("{\"key\":\"a\",\"key\":\"a\",\"value\":\"b\"}", "found duplicate field `key` (column 16)"),
        ("{\"key\":\"a\",\"value\":\"b\",\"flags\":-1}", "found invalid value: integer `-1`, expected u32"),
        ("{\"key\":\"a\",\"val", "found EOF while parsing a string (column 15)"),
        ("[]", "found invalid length 0"),
        ("{\"keyspace\":\"a\",\"order\":\"sorted\"}", "found unknown variant `sorted`"),
        ("{\"keyspace\":\"a\",\"order\":\"semi_sorted\"}", "expected the prefix rule"),
        ("{\"keyspace\":\"a\",\"order\":\"hashed\",\"lists_prefixes\":true}", "expected a hashed keyspace"),
        ("{\"order\":\"hashed\"}", "expected the name of the keyspace, found none"),
        ("{\"keyspace\":\"a\",\"order\":\"hashed\",\"key\":\"a\"}", "expected a keyspace's order or an item"),
        ("{\"key\":\"a\",\"value\":\"b\",\"plan\":\"{}\"}", "expected a keyspace's order beside"),
    ] {
        let found = message(Format::JsonLines, &format!("{good}\n{line}\n"));
        assert!(found.starts_with("items, line 3: expected") && found.contains(expected), "{found}");
    }
    let error = read(Format::JsonLines, b"{\"key\":\"\xff\",\"value\":\"\"}").unwrap_err();
    assert!(error.to_string().contains("items, line 1: "), "{error}");
}

#[test]
fn csv_names_the_line() {
    for (file, expected) in [
        ("", "line 1: expected a header with key or key_base64, found neither"),
        ("key\na\n", "line 1: expected a header with value or value_base64, found neither"),
        ("key,worth\na,b\n", "line 1: expected a header of columns among keyspace, key"),
        ("key,key,value\na,a,b\n", "found \"key\""),
        ("key,value\na,b\n\"c\nd\",e\na\n", "line 5: expected 2 cells, as in the header, found 1"),
        ("key,value\r\na,b\r\na\r\n", "line 3: expected 2 cells, as in the header, found 1"),
        (
            "key,value,flags\na,b,many\n",
            "line 2: expected a whole number of 32 bits in flags, found \"many\"",
        ),
        ("key,key_base64,value\na,YQ==,b\n", "line 2: expected key or key_base64, found both"),
        ("key,value\na,b\nc,\"d\ne", "line 3: expected a closing quote, found the end of the file"),
        ("key,value\na,b\nc,\"", "line 3: expected a closing quote, found the end of the file"),
        ("key,value\na,b\nc,\"d\"\"", "line 3: expected a closing quote, found the end of the file"),
        ("key,value\na\",\"b", "line 2: expected a closing quote, found the end of the file"),
        ("key,value_base64\na,b\n", "line 2: expected padded base64 in value_base64, found invalid"),
    ] {
        let found = message(Format::Csv, file);
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn keys_have_a_limit() {
    let long = "k".repeat(KEY_BYTES_MAX + 1);
    for (format, file) in [
        (Format::JsonLines, format!("{{\"key\":\"{long}\",\"value\":\"\"}}\n")),
        (Format::Csv, format!("key,value\n{long},\n")),
    ] {
        let found = message(format, &file);
        assert!(found.contains("expected a key of at most 65536 bytes, found 65537 bytes"), "{found}");
    }
}
